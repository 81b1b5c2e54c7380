"""Parsers of language model replies: JSON, records and tags, also where a reply is malformed or cut short."""
