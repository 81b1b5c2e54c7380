# Uses the python of the active environment.
PYTHON ?= python
# One more than there are processors: many tests wait for servers and processes that they start.
WORKERS ?= $(shell $(PYTHON) -c "import os; print(min(4, (os.cpu_count() or 1) + 1))")

# Hundreds of processes of the tests would compile polyad again, and each worker all tests.
unexport PYTHONDONTWRITEBYTECODE
# Each processor has a worker; threads of matrix libraries would wait for each other, at work.
export OMP_NUM_THREADS ?= 1

.PHONY: check lint types layers test test-slow test-attacks coverage docs format

check: lint types layers test

lint:
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types:
	$(PYTHON) -m mypy

layers:
	$(PYTHON) -c "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"

test:
	$(PYTHON) -m pytest --numprocesses $(WORKERS) --dist loadfile

test-slow:
	$(PYTHON) -m pytest -m slow

test-attacks:
	$(PYTHON) -m pytest -m attacks

# The site, in docs/_build/html; needs the extras dev and docs. A broken link, or a notebook that fails, is an error.
docs:
	$(PYTHON) -m sphinx -W --keep-going -b html docs docs/_build/html -d docs/_build/trees

coverage:
	$(PYTHON) -m pytest --numprocesses $(WORKERS) --dist loadfile --cov src --cov-report term:skip-covered

format:
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .
