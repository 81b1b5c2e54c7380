"""Reading of one file, in this process or in a pool of worker processes."""
