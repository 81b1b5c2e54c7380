"""Generation of questions with known evidence from an index."""
