"""Hyperedges that a language model states: extraction, in two styles, within a budget."""
