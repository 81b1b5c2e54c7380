"""Runs: one folder holds what every retriever returned for every question of a data set."""
