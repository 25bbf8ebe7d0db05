# Everything runs in the virtual environment .venv, made on first use and brought up to date again
# whenever pyproject.toml changes. Choose the interpreter yourself with `make PYTHON=/path/to/python3`.

SHELL := /bin/sh
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTHON ?=
# Names and options for `make research`.
RUN ?=

# Tests start many programs, none of which should have to be compiled once more.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo demo-cluster test test-all test-declared check docs bench soak research clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(STAMP) ## three tenants on real data, beside plain DuckDB, with a figure
	$(BIN)/queryard load examples/load/demo.toml --compare marshal,duckdb --figure queryard-demo.png

demo-cluster: $(STAMP) ## two tenants on a Ray cluster of three nodes here, one killed, with a figure
	$(BIN)/python -m bench.ray.demo --figure queryard-demo-cluster.png

test: check ## check, then run the tests, of long ones a short form
	$(BIN)/python -m pytest -n 2 --dist worksteal

test-all: check docs ## check, then run all tests, long forms included; build the site
	$(BIN)/python -m pytest -n 2 --dist worksteal -m ""

test-declared: $(STAMP) ## install with declared dependencies only, and try the commands there
	$(BIN)/python -m tools.declared_only

check: $(STAMP) ## lint, layout, types, imports and declared dependencies
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tools.declared

docs: $(STAMP) ## build the site of all documents, commands and the Python API into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html"

bench: $(STAMP) ## run the benchmarks
	$(BIN)/python -m bench
	$(BIN)/python -m bench.exactness
	$(BIN)/python -m bench.submission
	$(BIN)/python -m bench.single_query --scale 5
	$(BIN)/python -m bench.single_query --scale 5 --busy
	$(BIN)/python -m bench.single_query --scale 5 --plan staged
	$(BIN)/python -m bench.live

soak: $(STAMP) ## an hour of mixed load in which everything goes wrong that can
	$(BIN)/python -m bench.soak --seconds 3600

research: $(STAMP) ## list the papers' experiments, or run some: RUN="NAME..." or RUN="all --seeds 1 --size 0.1"
	$(BIN)/python -m research $(RUN)

clean: ## remove .venv, caches, builds and the demonstration's figures
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -f queryard-demo.html queryard-demo.png queryard-demo-cluster.png
	find . -name .git -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

# The newest released Python from 3.11 on that can make a virtual environment. Each candidate is
# run, not only looked up, because a version manager's shim may exist for a version that is off.
$(STAMP): pyproject.toml
	@if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  python=; bare=; seen=; \
	  for candidate in $(or $(PYTHON),python3.19 python3.18 python3.17 python3.16 python3.15 \
	      python3.14 python3.13 python3.12 python3.11 python3 python); do \
	    version=$$($$candidate -c 'import sys; print(sys.version.split()[0])' 2>/dev/null) || continue; \
	    seen="$$seen $$candidate ($$version)"; \
	    $$candidate -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) or v[3] != "final")' \
	      2>/dev/null || continue; \
	    if $$candidate -c 'import ensurepip, venv' 2>/dev/null; then python=$$candidate; break; fi; \
	    bare=$${bare:-$$candidate}; \
	  done; \
	  if [ -z "$$python" ] && [ -n "$$bare" ]; then \
	    echo "error: $$bare cannot make virtual environments: its venv or ensurepip module is missing." >&2; \
	    echo "  On Debian and Ubuntu install it: sudo apt-get install $${bare##*/}-venv" >&2; \
	    exit 1; \
	  elif [ -z "$$python" ]; then \
	    echo "error: Queryard needs a released Python, 3.11 or newer; found:$${seen:- none}." >&2; \
	    echo "  Install one, or name one: make PYTHON=/path/to/python3" >&2; \
	    exit 1; \
	  fi; \
	  echo "Making $(VENV) with $$python"; \
	  $$python -m venv --clear $(VENV); \
	fi
	@echo "Installing Queryard and its development tools into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@
