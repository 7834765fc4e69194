"""Whole trainers as they are: they are handed stand-ins, and what they do with them is observed."""
