"""From the engine's generations to what clients read, in whatever form they asked."""
