"""Text as it streams: sentence boundaries."""
