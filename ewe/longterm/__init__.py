"""Memories that last across requests and users, and know how far each of them can be believed."""
