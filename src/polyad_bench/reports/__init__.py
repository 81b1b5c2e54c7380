"""Tables, plots and report pages of runs."""
