"""Pictures, scanned pages, and pictures inside documents, read by OCR."""
