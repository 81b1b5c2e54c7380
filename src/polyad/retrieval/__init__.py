"""From a question to evidence: one retriever a module or a folder."""
