"""OpenDocument texts."""
