"""From a question to evidence: one retriever a file."""
