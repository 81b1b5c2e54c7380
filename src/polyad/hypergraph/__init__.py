"""The mathematics of the hypergraph: incidence, frontiers and distances. Independent of stores, models and texts."""
