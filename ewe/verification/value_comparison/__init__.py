"""Claims compared with evidence by their names, numbers and dates, sentence by sentence; no model takes part."""
