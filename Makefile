# Everything runs in .venv, made on demand and stamped: a second run starts at once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DOCS := .venv-docs
# An environment knows where it lies: one that was copied or moved with the tree is made anew.
MADE := $(VENV)/.made-$(shell pwd | cksum | cut -d ' ' -f 1)
# .venv contains what the demo needs, or in addition all tools of the developers.
DEMO := $(VENV)/.demo
INSTALLED := $(VENV)/.installed
# The checks are planned for two cores. Some tests wait for a browser or for other processes, and further
# workers use that time. Each worker computes with one thread.
WORKERS ?= 4
# The tests of a file share what they make, so they stay in one process. Files are handed out in the
# order of tests/conftest.py, the slow ones first.
PARALLEL := -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# Hundreds of processes import the same modules. Without stored bytecode, each would compile them.
unexport PYTHONDONTWRITEBYTECODE

test all-tests quick lowest docs: export OPENBLAS_NUM_THREADS := 1
# Versions of numba overwrite each other's compiled code, so this environment has its own.
lowest: export NUMBA_CACHE_DIR := $(CURDIR)/.venv-lowest/compiled

.PHONY: demo test all-tests quick lowest mutation documentation docs lint compile browser study bench against tutorial dist plotly clean
.DELETE_ON_ERROR:

demo: $(DEMO)
	$(BIN)/mrshc demo

# make study NAME=table1; for real data, make study NAME=lymphoma DATA=folder. Renews the results in
# studies/ and shows them in README.md and docs/.
study: $(INSTALLED)
	$(BIN)/python -m studies $(NAME) $(if $(DATA),--data $(DATA))

# In under 20 minutes on two cores. R is measured where it is installed, with its package cluster;
# benchmarks/mrshc.R says more.
bench: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	  --editable '.[bench]' || echo "The packages for comparison cannot be installed."
	$(BIN)/python benchmarks/bench.py

# This code and version 0.2.0, whose release is d837ed9, in turns; make against DATA=folder for lymphoma.
against: $(INSTALLED) .venv-0.2.0/.installed
	$(BIN)/python benchmarks/against.py .venv-0.2.0/bin/python $(if $(DATA),--data $(DATA))

.venv-0.2.0/.installed:
	$(PYTHON) -m venv --clear .venv-0.2.0
	git archive --prefix=source/ d837ed9 | tar -x -C .venv-0.2.0
	.venv-0.2.0/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
	  --constraint constraints.txt '.venv-0.2.0/source[cli]'
	touch $@

# make tutorial DATA=folder: renew the outputs and pictures of docs/guide/tutorial.md
tutorial: $(INSTALLED)
	$(BIN)/python examples/tutorial.py $(DATA)

# The loops are compiled while the source is linted: four processes would compile each of them.
test: $(INSTALLED)
	$(MAKE) --jobs=2 --output-sync=target lint compile browser
	$(MAKE) all-tests

all-tests: $(INSTALLED)
	$(BIN)/pytest $(PARALLEL) -m 'not (documentation and slow)'

# For daily work, in under three minutes: without the tests that are marked as slow.
quick: $(INSTALLED)
	$(BIN)/pytest $(PARALLEL) -m 'not slow and not documentation' -q

# All tests with the oldest versions of the dependencies that pyproject.toml admits. They call functions
# of each other that are deprecated by now, and zarr warned of names in the files of anndata, so such
# warnings are not errors here.
lowest:
	$(PYTHON) -m venv --clear .venv-lowest
	$(PYTHON) tests/lowest_versions.py > .venv-lowest/constraints.txt
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
	  --constraint .venv-lowest/constraints.txt --editable '.[test]'
	.venv-lowest/bin/pytest $(PARALLEL) -m 'not (documentation and slow)' \
	  -W default::DeprecationWarning -W default::PendingDeprecationWarning \
	  -W 'default:The codec `vlen-utf8`:UserWarning'

# Small faults in core/, and whether the tests notice them: mutation/run.py says more. Takes hours.
mutation: $(INSTALLED)
	$(BIN)/python mutation/run.py

# Compares the pages with the committed results, with the registries, and with what the commands of the
# tutorial say on real data. `make test` leaves out the tutorial.
documentation: $(INSTALLED)
	$(BIN)/pytest tests/documentation

# The site of the documentation: build/docs/html/index.html. Needs no network once it is installed. It
# has an environment of its own, since the packages for the site are of no use for the tests.
docs: $(DOCS)/.installed
	$(DOCS)/bin/python -m sphinx -b html --fail-on-warning --keep-going --quiet \
	  --doctree-dir build/docs/doctrees docs build/docs/html
	@echo "Open build/docs/html/index.html"

$(DOCS)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
	  --constraint constraints.txt --editable '.[docs]'
	touch $@

# The report is tested in Chromium. Where it is missing and can be had, it is installed; where it
# cannot, those tests say so and are skipped.
browser:
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null \
	  || command -v google-chrome > /dev/null \
	  || if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium > /dev/null \
	      || echo "Chromium cannot be installed now: the report will not be tested."; \
	  else echo "No Chromium, and it cannot be installed here: the report will not be tested."; fi

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

compile: $(INSTALLED)
	$(BIN)/python tests/compile_kernels.py

# Builds the files of a release, checks them, and runs the wheel in new environments.
dist:
	$(PYTHON) -m venv --clear .venv-dist
	.venv-dist/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
	  --constraint constraints.txt build twine
	rm -rf dist
	.venv-dist/bin/python -m build --outdir dist
	.venv-dist/bin/twine check --strict dist/*
	$(PYTHON) tools/try_wheel.py dist

# Renews the part of plotly.js that is stored in the package.
plotly:
	$(PYTHON) tools/vendor_plotly.py

clean:
	rm -rf $(VENV) .venv-0.2.0 .venv-lowest .venv-dist $(DOCS) docs/gallery docs/api/generated build dist mrshc-demo mrshc-result mrshc-comparison .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Most modules of the packages are never imported: Python compiles those that are. The version of mrshc,
# which pip records, is in src/mrshc/version.py.
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile \
	  --constraint constraints.txt --editable

$(DEMO): pyproject.toml constraints.txt src/mrshc/version.py $(MADE)
	$(INSTALL) '.[cli]'
	touch $@

# The tools include what the demo needs.
$(INSTALLED): pyproject.toml constraints.txt src/mrshc/version.py $(MADE)
	$(INSTALL) '.[dev]'
	touch $(DEMO) $@

$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mrshc needs Python 3.11 or newer, found " + sys.version.split()[0] + ": set PYTHON=...")'
	$(PYTHON) -m venv --clear $(VENV)
	touch $@
