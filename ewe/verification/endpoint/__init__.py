"""Language models that others serve, or that live in this process, as completers of prompts."""
