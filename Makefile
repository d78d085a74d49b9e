# Two commands for a fresh machine with Python 3.11+ and a C++ compiler: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := CMakeLists.txt $(wildcard src/native/*)
SOURCES := pyproject.toml $(NATIVE) $(shell find src/exactrank -name '*.py' -o -name '*.pyi' -o -name '*.jinja' -o -name '*.css' -o -name '*.js')
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
BUILD_TOOLS := "scikit-build-core>=0.10" "nanobind>=2.4" "cmake>=3.18" ninja
export PATH := $(CURDIR)/$(BIN):$(PATH)
export NO_MKDOCS_2_WARNING := 1

.PHONY: demo test test-browser check docs bench fuzz sanitize clean

demo: $(VENV)/.installed
	exactrank demo --report build/demo --force

test: $(VENV)/.tested
	$(BIN)/python -m pytest

# The report of a comparison in a real browser. Installs Debian's Chromium with apt-get where there is none, by sudo unless you are root.
test-browser: $(VENV)/.tested
	command -v chromium || { s=$$([ $$(id -u) = 0 ] || echo sudo); $$s apt-get update && $$s apt-get install --yes --no-install-recommends chromium; }
	$(BIN)/python -m pytest tests/test_browser.py

# Format, lint, types, direction of imports, strict docs.
check: $(VENV)/.checked
	ruff format --check .
	ruff check .
	mypy
	lint-imports
	mkdocs build --strict --quiet --site-dir build/site

docs: $(VENV)/.checked
	mkdocs build --strict --site-dir build/site

# Every claim of speed, as ratios against peers measured in the same run.
bench: $(VENV)/.benched
	for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

# Random text for the parser and damaged files for the cache, a minute each.
fuzz: $(VENV)/.tested
	$(BIN)/python tests/fuzz.py --seconds 60

# The kernels' tests under AddressSanitizer and UndefinedBehaviorSanitizer.
sanitize: $(VENV)/.tested
	rm -rf build/sanitize
	$(PIP) --no-build-isolation --no-deps --target build/sanitize . -C cmake.define.EXACTRANK_SANITIZE=ON -C build-dir=build/sanitize-objects
	LD_PRELOAD="$$($${CXX:-g++} -print-file-name=libasan.so) $$($${CXX:-g++} -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
	  PYTHONPATH=build/sanitize $(BIN)/python -m pytest -p no:cacheprovider tests/test_measures.py tests/test_profile.py tests/test_line_search.py tests/test_directrank.py \
	  tests/test_letor.py tests/test_cache.py tests/test_synthetic.py tests/test_lambdas.py tests/test_listwise.py tests/test_network.py tests/test_spsa.py \
	  tests/test_structured.py tests/test_pair_hinge.py tests/test_cutting_plane.py tests/test_bundle.py tests/test_regularised_risk.py \
	  tests/test_adarank.py tests/test_rankboost.py tests/test_thresholds.py tests/test_sampled_lambdas.py tests/test_tree_ensemble.py tests/test_tree_text.py \
	  tests/test_native_borders.py tests/test_refused_threads.py

clean:
	rm -rf build $(VENV)

$(VENV)/.tools:
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip
	$(PIP) $(BUILD_TOOLS)
	touch $@

$(VENV)/.installed: $(VENV)/.tools $(SOURCES)
	$(PIP) --no-build-isolation .
	touch $@

$(VENV)/.tested: $(VENV)/.tools $(SOURCES)
	$(PIP) --no-build-isolation '.[test]'
	touch $@

$(VENV)/.checked: $(VENV)/.tools $(SOURCES)
	$(PIP) --no-build-isolation '.[all,check]'
	touch $@

$(VENV)/.benched: $(VENV)/.tools $(SOURCES)
	$(PIP) --no-build-isolation '.[bench]'
	touch $@
