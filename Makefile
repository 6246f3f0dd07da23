# Packages are installed on first use, and again when pyproject.toml or constraints.txt change. The targets demo, run and
# worker install the packages of the site; all others also those of the tests, linters and optional stores.
#
#   PYTHON=python3.12       the interpreter to build the virtual environment with, 3.11 or later
#   TORCH_INDEX=<url>       an index with the CPU build of torch; on Linux the default index has the CUDA build
#   PYTEST_ARGS, DEMO_ARGS  extra arguments of pytest and of the demo
#   TEST_PROCESSES=4        number of test processes, each with its own services; default: the number of cores plus two,
#                           at most 4; 0 runs all tests in one process; `make faults`, whose tests mostly wait, starts
#                           half as many more
#   FUZZ_EXAMPLES=200000    number of damaged files per reader, and of WebSocket frames, in `make fuzz`
#   FUZZ_REQUESTS=300       number of random requests per API operation in `make fuzz`
#   ADDRESS=127.0.0.1:8000  address of the site in `make run`
#   WORKERS=1               number of workers of `make run`; more, with `make worker`

PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3,$(shell command -v $(name))))
ADDRESS ?= 127.0.0.1:8000
WORKERS ?= 1
TEST_PROCESSES ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2)
FUZZ_EXAMPLES ?= 200000
FUZZ_REQUESTS ?= 300
BIN := .venv/bin
MANAGE := $(BIN)/python manage.py
INSTALLED := .venv/installed
INSTALLED_DEV := .venv/installed-dev
PYTEST := $(BIN)/python -m pytest --numprocesses $(TEST_PROCESSES) --maxprocesses 4 --dist worksteal

# If this is set, each of the many test processes compiles every module again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test thorough faults fuzz install run worker lint style types audit openapi screenshots perf perf-check gpu dist clean

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

demo: $(INSTALLED) ## benchmark real text with a real model, print the leaderboard and serve the site
	$(MANAGE) demo $(DEMO_ARGS)

test: $(INSTALLED_DEV) ## run the tests, except thorough, faults and fuzz
	$(PYTEST) $(PYTEST_ARGS)

thorough: $(INSTALLED_DEV) ## run the slow tests: browser, every page, address, store and role, full-size numbers
	$(PYTEST) -m thorough $(PYTEST_ARGS)

faults: $(INSTALLED_DEV) ## break workers, Redis, PostgreSQL, disks and models in every stage, and write the table of results
	BENCHBENCH_WRITE_FAULTS=1 $(PYTEST) --numprocesses $$((3 * $(TEST_PROCESSES) / 2)) --maxprocesses 8 -m faults tests/faults $(PYTEST_ARGS)

fuzz: $(INSTALLED_DEV) ## test readers, imports, round trips, API and sockets with random and damaged input
	BENCHBENCH_FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) BENCHBENCH_FUZZ_REQUESTS=$(FUZZ_REQUESTS) \
	  $(PYTEST) -m fuzz $(PYTEST_ARGS)

install: $(INSTALLED_DEV) ## create the virtual environment .venv with all pinned packages, including those of tests and stores

run: $(INSTALLED) ## serve the site at ADDRESS with WORKERS workers; updates the embedded database after a backup
	@$(MANAGE) serve $(ADDRESS) --workers $(WORKERS)

worker: $(INSTALLED) ## run a worker for the queues, next to `make run`; start as many as you like
	$(MANAGE) worker

lint: types style ## check style, types, imports and language; with --jobs 2, types at the same time

types: $(INSTALLED_DEV)
	$(BIN)/mypy

style: $(INSTALLED_DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/djangofmt --quiet --check templates
	$(BIN)/djangofmt check --quiet templates
	$(BIN)/oxlint static/benchbench
	$(BIN)/oxfmt --check static/benchbench/*.js
	$(BIN)/hadolint Dockerfile
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.compose-spec docker-compose.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-actions action.yml
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell $$(git ls-files apps benchbench docs perf static templates tests '*.md')
	$(BIN)/python -m pytest --quiet --noconftest -p no:django tests/test_language.py tests/test_chance.py
	$(BIN)/bandit --quiet --recursive --configfile pyproject.toml --severity-level medium apps benchbench manage.py

audit: $(INSTALLED_DEV) ## for a release: check the packages for known vulnerabilities and write their list (SBOM); needs the network
	$(BIN)/pip-audit --strict --requirement constraints.txt --no-deps --disable-pip
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file sbom.json $(BIN)/python

openapi: $(INSTALLED_DEV) ## regenerate docs/openapi.yaml and its examples after a change of the API
	$(MANAGE) spectacular --file docs/openapi.yaml --validate --fail-on-warn
	BENCHBENCH_RECORD_EXAMPLES=1 $(BIN)/python -m pytest --quiet -m '' tests/api/test_addresses.py -k examples_match_recorded
	$(MANAGE) spectacular --file docs/openapi.yaml --validate --fail-on-warn

screenshots: $(INSTALLED_DEV) ## renew the pictures of the docs: of the demo, and of SciFact if ../shared/data has it; needs Chromium
	$(BIN)/python docs/screenshots.py $(SCREENSHOTS_ARGS)

perf-check: $(INSTALLED_DEV) ## compare ratios of times with the stored ones; fails if one grew beyond its noise
	PYTHONPATH=. $(BIN)/python perf/check.py

perf: $(INSTALLED_DEV) ## measure speed at full size; takes at least half an hour, see perf/README.md
	@set -e; for script in $(filter-out perf/throwaway.py perf/figures.py perf/mutants.py perf/mutations.py perf/pairings.py perf/check.py perf/upgrading.py perf/size.py perf/ways.py,$(sort $(wildcard perf/*.py))); do \
	  if grep -q '"--million"' $$script; then size=--million; else size=; fi; \
	  echo "== $$script $$size"; PYTHONPATH=. $(BIN)/python $$script $$size; done

gpu: $(INSTALLED_DEV) ## with a CUDA device: compare its rankings with the CPU's, and measure its speed
	$(BIN)/python -m pytest -m gpu -rs tests/retrieval/test_gpu.py tests/benchmarks/test_independence.py
	PYTHONPATH=. $(BIN)/python perf/gpu.py

dist: $(INSTALLED_DEV) ## build the light wheel and the sdist, of equal bytes each time, into dist/
	$(BIN)/hatchling build --directory dist

release: ## run all checks of CONTRIBUTING.md, and build wheel, sdist, SBOM and checksums into dist/
	.ci/run
	rm -rf dist
	$(MAKE) audit dist
	mv sbom.json dist/
	cd dist && sha256sum * > SHA256SUMS && cat SHA256SUMS

clean: ## stop the embedded services and delete their data
	@if [ -x $(BIN)/python ]; then $(BIN)/python -m benchbench.embedded remove; fi
	rm -rf "$${BENCHBENCH_DATA_DIR:-.benchbench}"

# An editable install: pip reads the dependencies of the site from pyproject.toml, and the code runs from the checkout.
# torch is installed first and alone, because the index in TORCH_INDEX has little else. Modules are compiled in the
# background, on the cores that the next commands leave idle; what these import sooner, they compile themselves.
$(INSTALLED): pyproject.toml constraints.txt
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "BenchBench needs Python 3.11 or later: run make PYTHON=/path/to/python3.11" >&2; exit 1; }
	[ -x $(BIN)/python ] || "$(PYTHON)" -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade -c constraints.txt pip
	$(BIN)/python -m pip install --quiet --no-compile --no-deps -c constraints.txt $(TORCH_INDEX:%=--index-url %) torch
	$(BIN)/python -m pip install --quiet --no-compile -c constraints.txt -e '.[site]'
	@nohup nice -n 19 $(BIN)/python -W ignore -m compileall -qq --workers 0 .venv/lib >/dev/null 2>&1 &
	@touch $@

# Adds packages to those of the site, without removing any.
$(INSTALLED_DEV): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --no-compile -c constraints.txt -e '.[site,dev,ir-datasets,chromadb,faiss,lancedb,sqlite-vec,ollama,openai,umap,sudachipy,rjieba,kiwipiepy,pythainlp,typesense,datasette,mcp]'
	@touch $@
