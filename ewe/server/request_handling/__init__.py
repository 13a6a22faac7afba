"""What is around every request: keys and limits, its body, fields without effect, work in threads."""
