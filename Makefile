# Targets print what they do in `make help`; a recipe stays short, logic lives in Python.
.DEFAULT_GOAL := help
.SUFFIXES:
# Tests start many processes: what Python compiled once is kept, even where the environment says not to.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
BIN := .venv/bin
SEEDS ?= 200
# One more than there are cores: some tests wait for processes.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(1 + (os.cpu_count() or 1))')
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)
# A file's tests by one worker; those that take longest begin first, else all wait for the last of them.
IN_ORDER := --dist=loadfile --no-loadscope-reorder
# Continuous integration tries a test that fails once more, and lists it.
AGAIN := $(if $(RERUNS),--reruns=$(RERUNS) -rfER)
CYCLE := build/bench/cycle.jsonl
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
    --no-emit-index-url --no-emit-find-links $(if $(UPGRADE),--upgrade) pyproject.toml

.PHONY: help
help: ## This list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: install
install: .venv/.installed ## Make .venv with everything a developer needs

.venv/.installed: pyproject.toml requirements-dev.lock
	$(PYTHON) -c 'import sys; sys.exit("Loadmaster needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --require-hashes --requirement requirements-dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: lock
lock: install ## Write the image's requirements.lock and requirements-dev.lock from pyproject.toml (UPGRADE=1: the newest versions)
	$(BIN)/pip install --quiet --disable-pip-version-check uv
	$(COMPILE) --extra fast --extra traces --group build -o requirements.lock
	$(COMPILE) --all-extras --group dev --constraint requirements.lock -o requirements-dev.lock

.PHONY: audit
audit: install ## Ask PyPI whether a locked library has a known vulnerability
	$(BIN)/pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv tool run pip-audit --require-hashes --disable-pip --requirement requirements.lock
	$(BIN)/uv tool run pip-audit --require-hashes --disable-pip --requirement requirements-dev.lock

.PHONY: fmt
fmt: install ## Format the code and fix what ruff can fix
	$(BIN)/ruff check --quiet --fix-only .
	$(BIN)/ruff format .

.PHONY: check
check: install ## Lint, format, layers, types, unit tests: four minutes on two cores, no cluster
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/pytest tests/unit -m "not programs" --numprocesses=$(WORKERS) $(AGAIN)

.PHONY: test
test: check controlplane ## Everything: check, then tests of whole programs, then those on a real API server
	$(BIN)/pytest tests/unit -m programs --numprocesses=$(WORKERS) --dist=worksteal $(AGAIN)
	$(BIN)/pytest tests/cluster -m "not alone" --numprocesses=3 $(IN_ORDER) $(AGAIN)
	$(BIN)/pytest tests/cluster tests/browser -m alone $(AGAIN)
	$(BIN)/pytest tests/chaos tests/browser -m "not alone" --numprocesses=2 $(IN_ORDER) $(AGAIN)

.PHONY: chaos
chaos: install ## Faults of all kinds at once on a real API server, ROUNDS=n SEED=s: 10 s a round (ROUND=k: that one only, FAULT=kind: those with it)
	@$(BIN)/python -m tests.chaos --rounds $(or $(ROUNDS),20) --seed $(or $(SEED),1) $(if $(ROUND),--round $(ROUND)) $(if $(FAULT),--fault $(FAULT))

.PHONY: workloads-test
workloads-test: install ## Gangs of JobSet, LeaderWorkerSet, RayCluster and TrainJob, with their real controllers, built first (WORKLOADS="PYTEST ARGUMENTS")
	@$(BIN)/pytest tests/workloads $(AGAIN) $(WORKLOADS)

.PHONY: kind
kind: install ## A kind cluster with Loadmaster: three nodes in three zones, and how to look around (KUBERNETES=1.35)
	@$(BIN)/python -m tests.kind up

.PHONY: kind-down
kind-down: install ## Delete the cluster that kind made
	@$(BIN)/python -m tests.kind down

.PHONY: kind-test
kind-test: install ## The image, and what users do, on a kind cluster: 15 minutes (KIND="PYTEST ARGUMENTS", KUBERNETES=1.35, KEEP=1: the cluster stays)
	@$(BIN)/python -m tests.kind test $(AGAIN) $(KIND)

.PHONY: kind-deps
kind-deps: install ## Install the Debian packages that kind-test needs, Docker where there is no engine, and Prometheus (as root)
	@$(BIN)/python -m tests.kind install

.PHONY: conformance
conformance: install ## Judge SEEDS=n generated clusters against kube-scheduler itself (needs Go, or gets it)
	$(BIN)/python -m tests.conformance.run --seeds $(SEEDS)

.PHONY: fuzz
fuzz: install ## Feed hostile input to every decoder: RUNS=inputs or SECONDS=10 for each target [TARGET=quantities]
	$(BIN)/python -m tests.fuzz $(if $(TARGET),--target $(TARGET)) $(if $(RUNS),--runs $(RUNS)) $(if $(SECONDS),--seconds $(SECONDS))

.PHONY: skew-test
skew-test: install ## The cluster tests on API servers of 1.34 to 1.37, each built first (KUBERNETES="1.34 1.37", FILES="dra volumes", ALL=1: every test, WRITE=1: docs/versions.md)
	@$(BIN)/python -m tests.skew $(KUBERNETES) $(if $(ALL),--all) $(if $(FILES),--files $(FILES)) $(if $(WRITE),--write) --workers $(WORKERS)

.PHONY: controlplane
controlplane: install ## Build the test control plane into the user's cache (once, about 7 minutes)
	$(BIN)/python -m tests.controlplane build

.PHONY: manifest
manifest: install ## Write what the chart is made from and what is made from it: permissions, schema, deploy/, tables in docs/
	$(BIN)/python -m tests.chart.manifest

.PHONY: dist
dist: install ## Write wheel and sdist into dist/, the same bytes each time
	@$(BIN)/python -m tests.release dist

.PHONY: sbom
sbom: install ## Write what is in the wheel's environment into dist/, as CycloneDX (IMAGE=directory: what is in an unpacked image)
	@$(BIN)/python -m tests.release sbom $(if $(IMAGE),--image $(IMAGE))

.PHONY: wheels
wheels: install ## Ask PyPI whether each locked library has a wheel for each Python, on amd64 and arm64
	$(BIN)/pip install --quiet --disable-pip-version-check uv
	@$(BIN)/python -m tests.release wheels

.PHONY: krew
krew: install ## Write kubectl-loadmaster for this machine's system into dist/, with Python and all libraries
	@$(BIN)/python -m tests.release krew

.PHONY: krew-manifest
krew-manifest: install ## Write krew's manifest for the archives of all systems, which are in dist/
	@$(BIN)/python -m tests.release krew-manifest

.PHONY: reference
reference: install ## Write what comes from the code: docs/plugin-reference.md, docs/operations/metrics.md, the fields of what `simulate` reads
	$(BIN)/python -m tests.reference.known_fields
	$(BIN)/python -m tests.reference.plugin_page
	$(BIN)/python -m tests.reference.metrics_page

.PHONY: upstream
upstream: install ## List what kube-scheduler TO=1.37.2 changes since FROM=1.36.3 that concerns us, and where we have it (needs Go)
	@$(BIN)/python -m tests.reference.upstream_changes $(FROM) $(TO)

.PHONY: docs
docs: install ## Build the pages as a site into build/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --config-file docs/site/mkdocs.yml

.PHONY: docs-version
docs-version: docs ## Commit the site to the local branch gh-pages as that of this version, beside those of others
	export PATH="$(CURDIR)/$(BIN):$$PATH" NO_MKDOCS_2_WARNING=1; \
	mike deploy --config-file docs/site/mkdocs.yml --update-aliases $(VERSION) latest && \
	mike set-default --config-file docs/site/mkdocs.yml latest

.PHONY: docs-test
docs-test: install ## Run the commands of README and docs on a real control plane, and check links and examples: 6 minutes
	$(BIN)/pytest tests/docs
	@cat build/docs-test.txt

.PHONY: explain-page
explain-page: install ## Write docs/explain-gallery.md: the answers about pods that are pending on a real API server
	LOADMASTER_WRITE_PAGE=1 $(BIN)/pytest tests/cluster/test_explain.py

.PHONY: page-shots
page-shots: install ## Write the pictures of docs/page.md, docs/page-20.png and docs/page-5000.png (needs Chromium)
	$(BIN)/python -m tests.browser shots

.PHONY: browser-deps
browser-deps: install ## Install Debian's Chromium, which the tests of the page need (as root)
	@$(BIN)/python -m tests.browser install

.PHONY: demo
demo: install ## See it work: places Deployments on 20 fake nodes, in the terminal (KEEP=1: and stays)
	@$(BIN)/python -m tests.demo

.PHONY: bench
bench: install ## kube-scheduler's own workloads against it, a tenth of their size: 30 minutes (BENCH="REGEX --scale 1 …")
	$(BIN)/python -m tests.bench.run $(or $(BENCH),--scale 0.1 --minutes 28)

.PHONY: bench-report
bench-report: install ## Write RESULTS="build/bench/….jsonl" and bench-cycle's into docs/benchmarks.md (PLOT="CASE/NAME …" or all)
	$(BIN)/python -m tests.bench.report $(RESULTS) $(addprefix --decisions ,$(wildcard $(CYCLE))) \
	    --page docs/benchmarks.md $(if $(PLOT),--plot $(PLOT))

.PHONY: bench-cycle
bench-cycle: install ## What one decision costs, without a cluster
	$(BIN)/python -m tests.bench.cycle --out $(CYCLE)

.PHONY: counted
counted: install ## Compare what a pod costs in calls, arrays and memory with what is recorded (WRITE=1: record it)
	$(BIN)/python -m tests.bench.counted $(if $(WRITE),--write)

.PHONY: soak
soak: install ## Pods that come and go on 1,000 fake nodes, hostile ones among them: does anything grow? (MINUTES=30)
	$(BIN)/python -m tests.attacks.soak --minutes $(or $(MINUTES),30)

.PHONY: sizing
sizing: install ## CPU, memory and start-up time by nodes and pods, up to 100,000 nodes: 20 minutes (SIZING="--sizes 1000:30000 …")
	$(BIN)/python -m tests.sizing $(SIZING)

.PHONY: bench-groups
bench-groups: install ## What a decision about a group of pods takes, and for how long it holds the event loop, without a cluster
	$(BIN)/python -m tests.bench.groups

.PHONY: bench-queue
bench-queue: install ## What waiting pods cost: events that help none or all of 100,000, add and pop, memory
	$(BIN)/python -m tests.bench.queue
