"""Readers of files: one module for each format, listed in the tables of ``files.py``."""
