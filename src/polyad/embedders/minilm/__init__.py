"""The default embedding model, all-MiniLM-L6-v2, computed with numpy instead of PyTorch."""
