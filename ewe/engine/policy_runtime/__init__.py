"""Policies at work: their generators are resumed, and what they yield is done."""
