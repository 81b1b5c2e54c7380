"""Judging of written answers: automatic measures, language-model judges and pairwise comparison."""
