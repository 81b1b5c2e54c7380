"""Files to documents: one kind of file a module, found by the table in ``files.py``."""
