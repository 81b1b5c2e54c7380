"""HyperMemory: a beam search guided by a language model."""
