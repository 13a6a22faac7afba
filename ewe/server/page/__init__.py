"""The web page: ask, watch the text being written and checked, see the evidence."""
