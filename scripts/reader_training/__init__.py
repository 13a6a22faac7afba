"""Parts of scripts/train_memory_reader.py."""
