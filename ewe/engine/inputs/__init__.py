"""What comes in: requests are checked and become tokens, prompts are made, with passages in them."""
