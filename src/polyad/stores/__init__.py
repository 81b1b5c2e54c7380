"""Stores of an index, one a file or folder."""
