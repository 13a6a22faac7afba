"""What goes over the wire: requests in, answers out, as OpenAI's and vLLM's clients know them."""
