"""Hyperedges from facts that a language model extracts, in two prompt styles and within a budget."""
