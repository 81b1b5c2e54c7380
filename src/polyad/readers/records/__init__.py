"""Readers of files with many documents: JSON Lines and CSV."""
