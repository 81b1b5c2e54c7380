"""Adapters: one outside system a module or a folder."""
