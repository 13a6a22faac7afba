"""What the server needs of an engine: a bridge to its thread, its models, its verifiers."""
