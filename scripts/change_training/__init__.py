"""What trains the reader of changes: pairs, sets and histories written by hand, an adapter, and a finder."""
