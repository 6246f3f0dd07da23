# Everything is set up on first use and again when pyproject.toml or constraints.txt change: for demo, run and worker the
# packages that the site needs; for every other target those of the tests, linters and optional stores too.
#
#   PYTHON=python3.12       the interpreter to build the virtual environment with, 3.11 or later
#   TORCH_INDEX=<url>       an index with the CPU build of torch; on Linux the default index has the CUDA build
#   PYTEST_ARGS, DEMO_ARGS  passed on
#   TEST_PROCESSES=3        how many processes share the tests, each with services of its own; one more than there are
#                           cores by default, since each waits for its services; 0: one, without sharing
#   FUZZ_EXAMPLES=200000    how many files `make fuzz` damages for each reader, and frames it sends; other ones each time
#   FUZZ_REQUESTS=300       how many requests `make fuzz` makes up of each operation of the API; other ones each time
#   ADDRESS=127.0.0.1:8000  where `make run` serves

PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3,$(shell command -v $(name))))
ADDRESS ?= 127.0.0.1:8000
TEST_PROCESSES ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
FUZZ_EXAMPLES ?= 200000
FUZZ_REQUESTS ?= 300
BIN := .venv/bin
MANAGE := $(BIN)/python manage.py
INSTALLED := .venv/installed
INSTALLED_DEV := .venv/installed-dev
PYTEST := $(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) --maxprocesses 4 --dist worksteal

# Tests start many processes, and where this is set each of them compiles every module anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test thorough faults fuzz install run worker lint audit openapi perf gpu clean

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18

demo: $(INSTALLED) ## benchmark real text with a real model, print the leaderboard, serve the site
	$(MANAGE) demo $(DEMO_ARGS)

test: $(INSTALLED_DEV) ## run the tests, but for those of the next two
	$(PYTEST) $(PYTEST_ARGS)

thorough: $(INSTALLED_DEV) ## run the tests that take long: in a browser, of every page, address, store and role, of numbers at full size
	$(PYTEST) -m thorough $(PYTEST_ARGS)

faults: $(INSTALLED_DEV) ## break workers, Redis, PostgreSQL, disks and models in every stage, and write the table of it
	BENCHBENCH_WRITE_FAULTS=1 $(PYTEST) -m faults tests/faults $(PYTEST_ARGS)

fuzz: $(INSTALLED_DEV) ## read FUZZ_EXAMPLES damaged files with each reader, import a part, go round with whole ones; try API and sockets
	BENCHBENCH_FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) BENCHBENCH_FUZZ_REQUESTS=$(FUZZ_REQUESTS) \
	  $(PYTEST) -m fuzz $(PYTEST_ARGS)

install: $(INSTALLED_DEV) ## make the virtual environment .venv with every pinned package, also those of tests and stores

run: $(INSTALLED) ## serve the site at ADDRESS
	$(MANAGE) migrate --verbosity 0
	$(MANAGE) runserver $(ADDRESS)

worker: $(INSTALLED) ## work the queues; start as many as you like, beside `make run`
	$(MANAGE) migrate --verbosity 0
	$(MANAGE) worker

lint: $(INSTALLED_DEV) ## check style, types and imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml --severity-level medium apps benchbench manage.py

audit: $(INSTALLED_DEV) ## for a release: known holes of the packages, and the list of them (SBOM); asks the registries
	$(BIN)/pip-audit --strict --requirement constraints.txt --no-deps --disable-pip
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file sbom.json $(BIN)/python

openapi: $(INSTALLED_DEV) ## write docs/openapi.yaml and its examples anew, after a change of the API
	$(MANAGE) spectacular --file docs/openapi.yaml --validate --fail-on-warn
	BENCHBENCH_RECORD_EXAMPLES=1 $(BIN)/python -m pytest --quiet -m '' tests/api/test_addresses.py -k examples_are
	$(MANAGE) spectacular --file docs/openapi.yaml --validate --fail-on-warn

perf: $(INSTALLED_DEV) ## measure speed at full size, in half an hour or more: see perf/README.md
	@set -e; for script in $(filter-out perf/throwaway.py perf/mutants.py perf/upgrading.py perf/llms.py perf/size.py perf/ways.py,$(sort $(wildcard perf/*.py))); do \
	  if grep -q '"--million"' $$script; then size=--million; else size=; fi; \
	  echo "== $$script $$size"; PYTHONPATH=. $(BIN)/python $$script $$size; done

gpu: $(INSTALLED_DEV) ## where there is a CUDA device: hold its rankings against the CPU's, and measure its speed
	$(BIN)/python -m pytest -m gpu -rs tests/retrieval/test_gpu.py tests/benchmarks/test_independence.py
	PYTHONPATH=. $(BIN)/python perf/gpu.py

clean: ## stop the embedded services and delete their data
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m benchbench.embedded remove; fi
	rm -rf .benchbench

# An editable install of a project without packages: pip reads the dependencies from pyproject.toml, and the code runs
# from the checkout. torch goes first and alone, because the index that TORCH_INDEX names has little else.
$(INSTALLED): pyproject.toml constraints.txt
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "BenchBench needs Python 3.11 or later; name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	[ -x $(BIN)/python ] || "$(PYTHON)" -m venv .venv
	$(BIN)/python -m pip install --quiet --no-deps -c constraints.txt $(TORCH_INDEX:%=--index-url %) torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e .
	@touch $@

# Adds packages to those of the site, and removes none.
$(INSTALLED_DEV): $(INSTALLED)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev,ir-datasets,chromadb,faiss,lancedb,sqlite-vec,ollama,openai,umap]'
	@touch $@
