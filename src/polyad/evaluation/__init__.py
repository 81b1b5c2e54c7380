"""Measuring: benchmark folders, measures, experiments."""
