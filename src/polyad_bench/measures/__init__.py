"""Measures of rankings, returned text and answers, and tests of their differences."""
