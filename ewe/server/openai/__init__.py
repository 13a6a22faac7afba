"""OpenAI's APIs: chat, completions, responses, embeddings; and rerank."""
