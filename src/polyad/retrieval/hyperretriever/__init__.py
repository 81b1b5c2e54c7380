"""HyperRAG's HyperRetriever: triples that a trained network holds plausible, hop by hop."""
