"""What those who run a server see: metrics, spans, the log, the report at the start."""
