"""Lines of a page, which PDF files and OCR share: paragraphs, tables, code and gaps."""
