"""Finding the names that a text mentions: by rules, from a list, by a language model."""
