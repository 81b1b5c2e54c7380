"""HyperSU: clue-guided expansion from both ends."""
