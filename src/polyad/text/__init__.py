"""Text, by rules alone: keys of names, the vocabulary of an index, tokens. Knows no store and no model."""
