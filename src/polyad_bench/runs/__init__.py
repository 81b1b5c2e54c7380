"""Runs: one folder contains the results of every retriever for every question of a data set."""
