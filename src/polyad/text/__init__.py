"""Text processing by rules: entity keys, tokens and words, paragraphs, prompts. Knows no store and no model."""
