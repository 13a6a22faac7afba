"""The next token of every row: draws, what a grammar allows, what neighbours say."""
