"""Embedders: one file or folder for each kind of embedding model."""
