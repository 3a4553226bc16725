# The commands a person uses; scripts/venv.sh installs what they need and does nothing when it is there.
PYTHON ?= python3
export PYTHON
RUN := .venv/run/bin/python
DEV := .venv/dev/bin/python
PORT ?= 8090

.PHONY: run test lint spec build sam-local bench-evidence bench-imports bench-load faults mutation lock clean

run: ## the product on this machine: no account, no Docker, no database server
	@scripts/venv.sh .venv/run requirements-local.txt
	@$(RUN) -m local.run --port $(PORT)

# In random order, another one each time: make test PYTEST=--randomly-seed=7 repeats the one whose seed was printed.
test: lint accounted checkov ## everything, on a fresh machine: installs what is missing and says so
	@$(DEV) -m tests.system_packages
	@$(DEV) -m pytest --numprocesses auto --dist loadfile $(PYTEST)

lint: dev
	@echo "ruff, mypy, import-linter"
	@.venv/dev/bin/ruff check --quiet .
	@.venv/dev/bin/ruff format --quiet --check .
	@.venv/dev/bin/mypy
	@.venv/dev/bin/lint-imports --no-cache --config pyproject.toml

spec: dev ## every rule of the specification with its tests; fails on a rule without one
	@$(DEV) scripts/spec.py --tests

.PHONY: accounted
accounted: dev
	@$(DEV) scripts/spec.py

.PHONY: checkov
checkov: dev
	@echo "checkov"
	@scripts/venv.sh .venv/checkov requirements-checkov.txt
	@mkdir -p .aws-sam
	@AWS_DEFAULT_REGION=us-east-1 $(DEV) -W ignore -m tests.translated_template Page=true ChatSnapStart=true > .aws-sam/translated.json
	@.venv/checkov/bin/checkov --config-file .checkov.yaml --file .aws-sam/translated.json

build: dev ## the deployable artefacts, in .aws-sam/
	@PATH="$(CURDIR)/.venv/dev/bin:$$PATH" SAM_CLI_TELEMETRY=0 sam build
	@$(DEV) scripts/sizes.py

# Where the code meets the real runtime; needs Docker or podman. make sam-local SAM_LOCAL="--images ~/.cache/sam-local"
# lets podman keep the image of the runtime, which it would fetch again each time.
sam-local: dev ## every function in the runtime image of AWS, by the events under events/
	@$(DEV) -m tests.sam_local $(SAM_LOCAL)

bench-imports: dev ## what each function's cold start spends on imports, beside what it can't do without
	@$(DEV) -m bench.cold_imports

# What the evidence is worth, as tables: make bench-evidence LOGS=folder/of/logs RUNBOOKS=folder/of/runbooks
bench-evidence: dev
	@scripts/venv.sh .venv/bench requirements-bench.txt
	@$(DEV) -m bench.evidence.guards $(if $(LOGS),--logs $(LOGS))
	@$(DEV) -m bench.evidence.log_projection $(LOGS)
	@$(DEV) -m bench.evidence.sql_guard
	@$(DEV) -m bench.evidence.redaction $(LOGS) $(RUNBOOKS)
	@$(if $(RUNBOOKS),.venv/bench/bin/python -m bench.evidence.retrieval $(RUNBOOKS),echo "RUNBOOKS names the folder of runbooks that retrieval is measured on")

# Many sockets and many runs at once, twenty minutes of them: make bench-load, make bench-load LOAD="--runs 500 --disturb 2"
bench-load: dev
	@$(DEV) -m bench.load $(LOAD)

# What goes wrong, on purpose: every boundary of a run with every fault, on real processes and a real database, then a
# hundred thousand frames that no client of ours would send; see docs/faults.md.
# make faults FAULTS="--seed 7 --only kill --lanes 4" GARBAGE="--seed 7 --frames 5000"
faults: dev
	@$(DEV) -m tests.system_packages
	@$(DEV) -m tests.faults $(FAULTS)
	@$(DEV) -m tests.faults.garbage --frames 100000 $(GARBAGE)

# Which small breaks of the core no test notices: make mutation, or make mutation MODULES="application.chat domain.run"
mutation:
	@scripts/venv.sh .venv/mutation requirements-mutation.txt
	@.venv/mutation/bin/python scripts/mutation.py $(MODULES)

lock: dev ## pin the newest releases that pyproject.toml allows
	@PATH="$(CURDIR)/.venv/dev/bin:$$PATH" scripts/lock.sh

clean:
	rm -rf .venv .mutation .data .aws-sam .mypy_cache .ruff_cache .pytest_cache

.PHONY: dev
dev:
	@scripts/venv.sh .venv/dev requirements-dev.txt
