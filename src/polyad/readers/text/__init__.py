"""Plain text, titles, metadata and sources of documents, which readers of all formats share."""
