"""HyperRAG's HyperMemory: a beam search that a language model steers."""
