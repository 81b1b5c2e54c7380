"""``python -m polyad``."""

from polyad.cli import main

main()
