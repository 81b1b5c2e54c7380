"""Reading of documents: the contract of file formats, plain text and records, and the walk through folders."""
