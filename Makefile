# Two commands for a fresh machine with Python 3.11+ and a C++ compiler: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := CMakeLists.txt $(shell find src/native -name '*.?pp')
SOURCES := pyproject.toml $(NATIVE) $(shell find src/exactrank -name '*.py' -o -name '*.pyi' -o -name '*.jinja' -o -name '*.css' -o -name '*.js' -o -name '*.json' -o -name '*.cu')
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
# Installed by itself, before the tests' other packages. For a smaller one without CUDA give TORCH="torch==2.13.0 --index-url URL" with the URL of
# PyTorch's index of wheels for processors.
TORCH ?= torch==2.13.0
BUILD_TOOLS := "scikit-build-core>=0.11" "nanobind>=2.4" "cmake>=3.26" ninja
export PATH := $(CURDIR)/$(BIN):$(PATH)
export NO_MKDOCS_2_WARNING := 1

.PHONY: demo test test-torch test-pages test-browser test-gpu check format types headers docs figures pictures bench bench-compare reproduce trace mutate fuzz faults soak sanitize sanitize-threads clean counts

demo:
	@$(MAKE) --question $(VENV)/.installed || echo "Installing exactrank into $(VENV). This compiles its C++ core, which takes a few minutes, once."
	@$(MAKE) --no-print-directory $(VENV)/.installed
	exactrank demo --out build/demo --force

# As many processes as there are cores. What needs PyTorch is skipped where it is not installed.
test: $(VENV)/.tested
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

# What needs PyTorch, which is installed first.
test-torch: $(VENV)/.torch $(VENV)/.tested
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal -k "torch or cross-encoders or sentence or gpu"

# The outputs that the documentation shows, with OpenBLAS's kernels for two other processors; NumPy's for AVX-512 are left out in one of them.
test-pages: $(VENV)/.tested
	OPENBLAS_CORETYPE=Haswell NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR" $(BIN)/python -m pytest --numprocesses auto tests/docs/test_docs.py
	OPENBLAS_CORETYPE=Prescott $(BIN)/python -m pytest --numprocesses auto tests/docs/test_docs.py

# The report of a comparison in a real browser. Installs Debian's Chromium with apt-get where there is none, by sudo unless you are root.
test-browser: $(VENV)/.tested
	command -v chromium || { s=$$([ $$(id -u) = 0 ] || echo sudo); $$s apt-get update && $$s apt-get install --yes --no-install-recommends chromium; }
	$(BIN)/python -m pytest tests/compare/test_browser.py

# The GPU's kernels on a GPU, beside their emulation, and PyTorch's tests; skipped, with the reason, what this machine lacks. Installs CuPy for
# the driver's version of CUDA where there is an NVIDIA GPU.
test-gpu: $(VENV)/.tested
	if command -v nvidia-smi > /dev/null && nvidia-smi > /dev/null; then \
	  $(PIP) torch cupy-cuda$$(nvidia-smi | sed -n 's/.*CUDA.*Version: \([0-9]*\).*/\1/p')x; \
	else echo "There is no NVIDIA GPU here: the kernels are emulated on the processor, and the CUDA tests are skipped."; fi
	$(BIN)/python -m pytest tests/backends/cuda tests/torch/test_torch.py tests/rankers/test_torch_ranker.py

# Format, lint, types, direction of imports, headers that stand alone, strict docs and their figures, limits of size; the core was built without a warning. With
# --jobs at once.
check: format types headers docs figures counts

format: $(VENV)/.checked
	ruff format --check .
	ruff check .
	clang-format --dry-run --Werror $(filter %pp,$(NATIVE))

types: $(VENV)/.checked
	mypy
	lint-imports

# Each header compiles by itself: it includes what it uses. All of them compile together: no name is defined twice, for of two classes with the
# same name the linker would silently keep the functions of one.
headers: $(VENV)/.checked
	compile="$${CXX:-c++} -std=c++20 -fsyntax-only -fvisibility=hidden -Wall -Wextra -Wno-psabi -Werror \
	  -Isrc/native -I$$(python -m nanobind --include_dir) -I$$(python -c 'import sysconfig; print(sysconfig.get_path("include"))')"; \
	find src/native -name '*.hpp' | xargs -P $$(getconf _NPROCESSORS_ONLN) -I HEADER $$compile -include HEADER -x c++ /dev/null && \
	find src/native -name '*.hpp' | sed 's/.*/#include "&"/' | $$compile -I. -x c++ -

# Lines, files, `Any` and the like: none may grow.
counts:
	$(PYTHON) benchmarks/counts.py

docs: $(VENV)/.checked
	mkdocs build --strict --quiet --site-dir build/site

# Every figure about quality or speed in the documentation is that of a ledger, and of today's code.
figures: $(VENV)/.checked
	$(BIN)/python -m benchmarks.figures

# The pictures of the documentation, into docs/img; the one of the report needs Chromium. With PICTURES="lines.svg ..." some alone.
pictures: $(VENV)/.tested
	$(BIN)/python docs/pictures.py $(PICTURES)

# Every claim of speed, as ratios against peers measured in the same run, into the ledger and from there into the documentation.
# With ARTIFICIAL=FOLDER on the artificial data sets there; with BENCHMARKS="benchmarks/bench_parse.py ..." some alone. The benchmark of the
# GPU runs by itself: `python benchmarks/bench_gpu.py`.
BENCHMARKS ?= $(filter-out benchmarks/bench_gpu.py,$(wildcard benchmarks/bench_*.py))
RUN_BENCHMARKS = for file in $(BENCHMARKS); do echo "== $$file"; BENCH_LEDGER=$(1) ARTIFICIAL=$(ARTIFICIAL) $(BIN)/python $$file || exit 1; done
bench: $(VENV)/.benched
	$(call RUN_BENCHMARKS,benchmarks/ledger)
	$(BIN)/python benchmarks/ledger.py docs

# The same beside the ledger: names what costs over 15% more than there.
bench-compare: $(VENV)/.benched
	rm -rf build/ledger
	$(call RUN_BENCHMARKS,build/ledger)
	$(BIN)/python benchmarks/ledger.py compare build/ledger

# The published experiments on a reduced scale, one after the other on one thread, into the ledger and from there into docs/reproduce.md.
# With EXPERIMENTS="spsa-table ..." some alone; --full, --seed and --data among them are those of benchmarks/reproduce.py.
reproduce: $(VENV)/.tested
	$(BIN)/python -m benchmarks.reproduce $(EXPERIMENTS)

# How many functions and files of the package a fit visits.
trace: $(VENV)/.tested
	$(BIN)/python benchmarks/trace.py

# One-line mutants of optimizers, objectives, training and models: are they noticed by the tests that own those lines?
mutate: $(VENV)/.tested
	$(BIN)/python -m tests.mutants

# Random, mutated and forged inputs for everything that reads a file: first with little memory, then under the sanitizers.
SECONDS ?= 60
fuzz: build/sanitize/.built
	$(BIN)/python -m tests.fuzz --seconds $(SECONDS)
	$(SANITIZED) $(BIN)/python -m tests.fuzz --seconds $(SECONDS) --limit 60

# Every write, rename, mapping, allocation and thread start of every command that writes fails once, or is the last.
faults: $(VENV)/.tested
	$(BIN)/python -m tests.faults

# Workers and processes that are killed, stopped and resumed at random, for half an hour: the model stays the same.
MINUTES ?= 30
soak: $(VENV)/.tested
	$(BIN)/python -m tests.soak --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

KERNEL_TESTS := $(foreach name,measures numerics profile line_search directrank letor cache synthetic lambdas listwise network spsa structured \
  pair_hinge cutting_plane bundle regularized_risk adarank rankboost thresholds sampled_lambdas tree_ensemble tree_shap tree_table forest \
  native_borders refused_threads,$(shell find tests -name test_$(name).py))
LIBRARY = $$($${CXX:-g++} -print-file-name=lib$(1).so)
SANITIZED = LD_PRELOAD="$(call LIBRARY,asan) $(call LIBRARY,ubsan)" ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 PYTHONPATH=build/sanitize

# The kernels' tests under AddressSanitizer and UndefinedBehaviorSanitizer.
sanitize: build/sanitize/.built
	$(SANITIZED) $(BIN)/python -m pytest -p no:cacheprovider $(KERNEL_TESTS)

# The same under ThreadSanitizer, but for a test that preloads a library of its own. Addresses are not drawn at random, since it needs
# them in certain places.
sanitize-threads: build/sanitize-threads/.built
	LD_PRELOAD="$(call LIBRARY,tsan)" TSAN_OPTIONS="exitcode=66 die_after_fork=0 allocator_may_return_null=1 suppressions=$(CURDIR)/tests/threads.supp" OPENBLAS_NUM_THREADS=1 \
	  PYTHONPATH=build/sanitize-threads setarch -R $(BIN)/python -m pytest -p no:cacheprovider $(filter-out %refused_threads.py,$(KERNEL_TESTS))

build/sanitize/.built: SANITIZERS := address,undefined
build/sanitize-threads/.built: SANITIZERS := thread
build/sanitize/.built build/sanitize-threads/.built: $(VENV)/.tested
	rm -rf $(@D)
	$(PIP) --no-build-isolation --no-deps --target $(@D) . -C cmake.define.EXACTRANK_SANITIZE=$(SANITIZERS) -C build-dir=$(@D)-objects
	touch $@

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

$(VENV)/.torch: $(VENV)/.tools
	$(PIP) $(TORCH)
	$(PIP) 'sentence-transformers[train]>=4,<7'
	touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(PIP) 'exactrank[test]'
	touch $@

# What is built without a warning is installed as well: the tests that follow the checks need no other build.
$(VENV)/.checked: $(VENV)/.tools $(SOURCES)
	$(PIP) --no-build-isolation '.[all,check]' -C cmake.define.EXACTRANK_WERROR=ON
	touch $(VENV)/.installed $@

$(VENV)/.benched: $(VENV)/.torch $(VENV)/.installed
	$(PIP) 'exactrank[bench]'
	touch $@
