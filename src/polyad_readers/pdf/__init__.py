"""PDF files, and pictures of their pages."""
