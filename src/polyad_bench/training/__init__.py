"""Training of the scorers of the retrievers ``default`` and HyperRetriever."""
