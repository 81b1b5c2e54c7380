# Uses the python of the active environment.
PYTHON ?= python

.PHONY: check lint types layers test test-slow test-attacks format

check: lint types layers test

lint:
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types:
	$(PYTHON) -m mypy

layers:
	$(PYTHON) -c "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"

test:
	$(PYTHON) -m pytest --numprocesses auto --maxprocesses 4 --dist loadfile

test-slow:
	$(PYTHON) -m pytest -m slow

test-attacks:
	$(PYTHON) -m pytest -m attacks

format:
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .
