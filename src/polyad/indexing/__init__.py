"""From documents to an indexed hypergraph: read, split, extract mentions, resolve, build hyperedges."""
