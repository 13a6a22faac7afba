"""What is let in, in which turn, and how much of it."""
