"""Which sequences are worked on, and what the next pass holds of them."""
