"""polyad: hypergraph retrieval-augmented generation."""
