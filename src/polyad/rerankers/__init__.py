"""Rerankers: one file for each kind."""
