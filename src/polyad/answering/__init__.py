"""From evidence to an answer that cites it."""
