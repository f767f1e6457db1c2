# make run   places the shipped snapshot and shows the result; sets up all it needs
# make test  runs the tests; sets up all they need
# make veripb installs VeriPB, and has it check proofs of ours
#
# PYTHON=... chooses the interpreter (3.11 or newer). CI=true installs the locked versions and
# turns what a missing tool would skip into a failure.

VENV      := .venv
BIN       := $(VENV)/bin
OLDEST    := .venv-oldest
SNAPSHOT  := instances/snapshots/blue_waters_60.json
COMPARED  := alps-o2,alps-2y,alps-4y,random-nodes,first-fit,best-fit
PYTEST    := -m pytest -n 2 --dist loadfile --no-loadscope-reorder
LOCKING    = $(VENV)/uv/bin/uv pip compile pyproject.toml --extra dev --universal \
             --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-annotate \
             --custom-compile-command 'make lock'
SITE       = $(BIN)/sphinx-build -W --keep-going -q -b html docs out/site
LOCKED    := $(filter true 1,$(CI))

# A command compiles the Python of two thousand modules if none may keep what it compiled, and the
# tests start a hundred commands.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := run
.PHONY: run test test-all test-oldest check docs bench studies lock clean minizinc veripb

run: $(VENV)/installed
	@mkdir -p out
	@$(BIN)/topoplace place $(SNAPSHOT) -o out/blue_waters_60.json --png out/blue_waters_60.png
	@echo
	@$(BIN)/topoplace check out/blue_waters_60.json
	@echo
	@$(BIN)/topoplace compare out/blue_waters_60.json --methods $(COMPARED)
	@echo
	@echo "picture: $(CURDIR)/out/blue_waters_60.png"

test: $(VENV)/compiled-dev minizinc
	@$(BIN)/python $(PYTEST)

test-all: $(VENV)/compiled-dev minizinc
	@$(BIN)/python $(PYTEST) -m 'slow or not slow'

test-oldest: $(OLDEST)/installed-dev minizinc
	@$(OLDEST)/bin/python $(PYTEST)

check: $(VENV)/compiled-dev minizinc
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tests/front_as_typed.py
	$(BIN)/python scripts/check_models.py
	$(SITE)

docs: $(VENV)/compiled-dev
	@$(SITE)
	@echo "$(CURDIR)/out/site/index.html"

bench: $(VENV)/installed
	@$(BIN)/python scripts/bench_place.py

# the source papers redone: what their pages read from, then the pages (hours at most)
studies: $(VENV)/installed
	$(BIN)/python scripts/study_blue_waters.py
	$(BIN)/python scripts/study_objects.py
	$(BIN)/python scripts/study_contention.py
	$(BIN)/python scripts/study_mappings.py halo_exchange
	$(BIN)/python scripts/study_sharing.py
	$(BIN)/python scripts/study_mishra_logs.py
	for paper in enos2014 fiedler2014 bhatele2008 bhatele2009 mishra2020; do \
		$(BIN)/python scripts/study_papers.py $$paper || exit 1; done

minizinc:
	@sh scripts/install_minizinc.sh

# A checker of proofs that is not ours (docs/proofs/veripb.md); needs cargo, and takes minutes.
$(BIN)/veripb: $(VENV)/made
	@cargo install veripb --version 3.0.2 --locked --root $(VENV)
	@touch $@

veripb: $(BIN)/veripb $(VENV)/compiled-dev
	@$(BIN)/python $(PYTEST) -m 'slow or not slow' -k 'verified or refused' tests/test_export.py

lock: $(VENV)/made
	$(LOCKING) --upgrade -o requirements.lock
	$(LOCKING) --upgrade --resolution lowest-direct -o requirements-oldest.lock

clean:
	rm -rf $(VENV) $(OLDEST) out build dist .mypy_cache .pytest_cache .ruff_cache

# The stamps: with them in place, and no newer pyproject.toml or lock, set-up takes no time.
$(VENV)/made: scripts/make_venv.sh
	@sh scripts/make_venv.sh $(VENV) '$(PYTHON)'
	@touch $@

$(VENV)/installed: $(VENV)/made pyproject.toml requirements.lock scripts/install.sh
	@echo "installing topoplace into $(VENV)"
	@sh scripts/install.sh $(VENV) $(if $(LOCKED),-c requirements.lock) -e .
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	@echo "installing the test tools into $(VENV)"
	@sh scripts/install.sh $(VENV) $(if $(LOCKED),-c requirements.lock) -e '.[dev]'
	@touch $@

$(VENV)/compiled-dev: $(VENV)/installed-dev
	@$(BIN)/topoplace warmup
	@touch $@

$(OLDEST)/installed-dev: pyproject.toml requirements-oldest.lock scripts/make_venv.sh scripts/install.sh
	@sh scripts/make_venv.sh $(OLDEST) '$(PYTHON)'
	@sh scripts/install.sh $(OLDEST) -c requirements-oldest.lock -e '.[dev]'
	@touch $@
