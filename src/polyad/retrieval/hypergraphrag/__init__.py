"""HyperGraphRAG: entities and hyperedges retrieved by vector and expanded both ways."""
