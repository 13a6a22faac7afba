"""The engine behind HTTP, as OpenAI's clients expect it."""
