"""What the papers on long-term memory measure, on this engine's stores."""
