"""The commands `polyad bench ...` and `polyad eval`."""
