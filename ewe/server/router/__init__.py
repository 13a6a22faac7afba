"""Many servers behind one address: requests that need the same memory units go to the same server."""
