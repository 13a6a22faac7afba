"""Long-term memory in the forms of other libraries, each imported by whoever uses it."""
