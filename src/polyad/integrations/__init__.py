"""Retrievers for other frameworks, one framework a file; each needs the extra of its name."""
