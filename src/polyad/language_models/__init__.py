"""Language models, one a file or folder, and the cache of their replies."""
