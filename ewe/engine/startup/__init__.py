"""What comes before the first request: the machine is looked at, its memory divided, units opened."""
