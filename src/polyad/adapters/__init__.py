"""Adapters: one outside system a file, found by name through the tables in their modules."""
