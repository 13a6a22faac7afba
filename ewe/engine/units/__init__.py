"""Working memory: units, lanes, and the cache of encoded units."""
