"""Marks the root of the catalogue that attacks aim at."""
