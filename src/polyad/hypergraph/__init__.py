"""The mathematics of the hypergraph: incidence, frontiers, distances. Knows no store, no model, no text."""
