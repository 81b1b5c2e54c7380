"""HyperGraphRAG: entities and hyperedges by vector, expanded both ways."""
