"""Data sets of questions on a corpus, and the file layouts that they are read from."""
