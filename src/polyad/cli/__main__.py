"""``python -m polyad.cli``."""

from polyad.cli import main

main()
