"""Markup in plain text: Markdown, reStructuredText and AsciiDoc."""
