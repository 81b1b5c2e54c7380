"""The embedder with the model multilingual-e5-small."""
