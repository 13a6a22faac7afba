"""Anthropic's and Cohere's APIs: chats with citations."""
