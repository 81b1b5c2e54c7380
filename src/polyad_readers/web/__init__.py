"""Web pages, e-mail and EPUB books."""
