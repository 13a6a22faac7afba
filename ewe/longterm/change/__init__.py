"""What a new statement changes about an older one: which ones it may end, and a small model that reads both."""
