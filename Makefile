# Uses the python of the active environment.
PYTHON ?= python
# One more than there are processors: many tests wait for servers and processes that they start.
WORKERS ?= $(shell $(PYTHON) -c "import os; print(min(4, (os.cpu_count() or 1) + 1))")

# Hundreds of processes of the tests would compile polyad again, and each worker all tests.
unexport PYTHONDONTWRITEBYTECODE
# Each processor has a worker; threads of matrix libraries would wait for each other, at work.
export OMP_NUM_THREADS ?= 1

.PHONY: check install lock lint types layers test test-examples test-slow test-attacks coverage speed docs format

check: lint types layers test

# What CI installs. PyTorch is pinned by version alone: its builds for CPU, CUDA and macOS are different files.
install:
	$(PYTHON) -m pip install --require-hashes --no-deps -r requirements/dev.txt
	$(PYTHON) -m pip install -c constraints.txt torch
	$(PYTHON) -m pip install --no-deps -e .

# Needs uv. `make lock UPGRADE=--upgrade` takes the newest versions; without it, only what pyproject.toml asks for changes.
DOCS = local documents llm plots server langchain llama-index haystack docs
LOCK = uv pip compile --quiet --universal --generate-hashes --no-annotate --no-emit-package torch -c constraints.txt \
    --excludes requirements/excludes.txt --custom-compile-command "make lock" $(UPGRADE) pyproject.toml
lock:
	$(LOCK) --extra dev -o requirements/dev.txt
	$(LOCK) $(DOCS:%=--extra %) -c requirements/dev.txt -o requirements/docs.txt
	$(LOCK:pyproject.toml=) --group release -c requirements/dev.txt -o requirements/release.txt

lint:
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types:
	$(PYTHON) -m mypy

layers:
	$(PYTHON) -c "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"

test:
	$(PYTHON) -m pytest --numprocesses $(WORKERS) --dist loadfile --durations 25

# The same tests with all examples of properties; `make test` tries two fifths of them.
test-examples:
	EXAMPLES=all $(MAKE) test

test-slow:
	$(PYTHON) -m pytest -m slow

test-attacks:
	$(PYTHON) -m pytest -m attacks

# The site, in docs/_build/html; needs the extras dev and docs. A broken link, or a notebook that fails, is an error.
docs:
	$(PYTHON) -m sphinx -W --keep-going -b html docs docs/_build/html -d docs/_build/trees

# Processor time of indexing and searching beside another checkout: `make speed BASE=../main`.
speed:
	$(PYTHON) benchmarks/compare_speed.py $(BASE)

coverage:
	$(PYTHON) -m pytest --numprocesses $(WORKERS) --dist loadfile --cov src --cov-report term:skip-covered

format:
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .
