"""Evaluation: data sets, measures, runs, reports and training."""
