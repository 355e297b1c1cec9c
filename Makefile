# Everything runs in .venv, which each target sets up by itself: nothing global, no root.
# `make PYTHON=/path/to/python3.12 …` chooses the interpreter; otherwise the first suitable one is taken.

# Modules are compiled once, and not by every process that a test starts.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
# What a user needs, and what somebody who works on Plait needs. Each stamp is renewed when its lock changes.
RUN := .venv/run.stamp
DEV := .venv/dev.stamp

# Where the tests are that need Spark. Each process that runs them has a Spark of its own, of 2 to 3 GB;
# what takes long comes first.
ON_SPARK := tests/differential tests/hostile tests/trouble tests/chaos tests/system tests/spark tests/docs

N ?= 1000
KILLS ?= 60

.DEFAULT_GOAL := help
.PHONY: help demo test test-unit test-slow lint format lock fuzz chaos bench pictures clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(RUN) ## A guided tour: check, plan, draw, run on Spark, compare (sets up .venv at first)
	@$(BIN)/plait demo

test: test-unit ## The tests, real Spark and the documentation included (brings its own Java where there is none)
	$(BIN)/python -m pytest -m "spark and not slow" $(ON_SPARK) --numprocesses 3 --dist loadfile

test-unit: $(DEV) ## The tests that need no Java, in about two minutes
	$(BIN)/python -m pytest -m "not spark and not slow" --numprocesses auto

test-slow: $(DEV) ## More of the same: what `make test` leaves out
	$(BIN)/python -m pytest -m slow --numprocesses 2 --dist loadfile

lint: $(DEV) ## Formatting, lint, strict types, direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(DEV) ## Format the code and fix what can be fixed by itself
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

fuzz: $(DEV) ## N random queries on Spark, N by its operators alone, and property tests with N examples each: make fuzz N=10000
	$(BIN)/python -m tests.differential.fuzz $(N)
	$(BIN)/python -m tests.differential.fuzz $(N) --engines spark
	PLAIT_FUZZ_EXAMPLES=$(N) $(BIN)/python -m pytest tests/property tests/differential/test_shared_way.py

chaos: $(DEV) ## Kill runs at every step, at random moments, and while queries change: results must not show it (KILLS=60)
	$(BIN)/python -m tests.chaos.campaign --kills $(KILLS)
	$(BIN)/python -m tests.chaos.sequences --count $(KILLS)

bench: $(RUN) ## All benchmarks; one of them: .venv/bin/plait bench NAME
	$(BIN)/plait bench --all

pictures: $(RUN) ## Draw the documentation's pictures anew
	for picture in docs/images/*.svg; do \
	  $(BIN)/plait plan "examples/$$(basename "$$picture" .svg).sql" --format svg --output "$$picture"; \
	done

lock: $(DEV) ## Renew both lock files from pyproject.toml
	tools/lock

clean: ## Remove .venv and all caches
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .grimp_cache dist build

$(RUN): requirements.lock pyproject.toml tools/set_up
	@tools/set_up
	@touch $@

$(DEV): requirements-dev.lock $(RUN)
	@echo "set-up: installing what $< pins"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --require-hashes --requirement $<
	@touch $@
