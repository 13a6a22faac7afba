"""The text of an answer as it grows: tokens become characters and sentences, and something ends it."""
