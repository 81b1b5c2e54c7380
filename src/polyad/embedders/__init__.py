"""Embedding models, one a file or folder."""
