"""HyperSU: clue-guided bidirectional expansion over semantic units."""
