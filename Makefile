# Shortcuts; CMake and its presets do the work. Each target first installs the Debian packages that it misses.
PREFIX ?= /usr/local
PRESET ?= dev
# The tests that run the engine once more under sanitizers: by default where CI is set, as in CI.
SANITIZERS ?= $(if $(CI),1,0)
JOBS ?= $(shell nproc)

RELEASE := build/release
BENCHES := holdfast_bench holdfast_runtime_bench holdfast_store_bench holdfast_job_bench holdfast_event_bench

.PHONY: help deps build demo test asan tsan bench format lint install clean

help:
	@echo "make demo       an invoice desk: durable mails, a flaky server, a worker that gets killed"
	@echo "make test       all tests (SANITIZERS=1, or CI set: then those of policies, jobs and events under ASan+UBSan and TSan)"
	@echo "make asan       all tests under ASan+UBSan;  make tsan: under TSan (STORES=all: with PostgreSQL and Redis)"
	@echo "make bench      benchmarks: tables, and pipeline.json, runtimes.json, stores.json, jobs.json, events.json in build/bench"
	@echo "make build      everything, for development, in build/dev (PRESET=release: another preset)"
	@echo "make install    into PREFIX=$(PREFIX)"
	@echo "make lint       clang-tidy and the format of the code;  make format: put it right"
	@echo "make deps       every Debian package that any of these needs"
	@echo "make clean      remove build/"

deps:
	@scripts/deps build servers sanitizers bench lint

build:
	@scripts/deps build
	cmake --preset $(PRESET)
	cmake --build --preset $(PRESET) --parallel $(JOBS)

demo:
	@scripts/deps build
	cmake --preset release
	cmake --build $(RELEASE) --parallel $(JOBS) --target invoice_desk runtime_asio store_sqlite
	@$(RELEASE)/bin/invoice_desk

ifeq ($(SANITIZERS),0)
test:
	@scripts/deps build servers bench
	@JOBS=$(JOBS) scripts/test ci
else
test:
	@scripts/deps build servers sanitizers bench
	@JOBS=$(JOBS) QUICK=1 scripts/test ci asan tsan
endif

asan tsan:
	@scripts/deps build servers sanitizers
	@JOBS=$(JOBS) STORES=$(STORES) scripts/test $@

bench:
	@scripts/deps build bench servers
	cmake --preset release
	cmake --build $(RELEASE) --parallel $(JOBS) --target $(BENCHES) holdfast_plugins
	@mkdir -p build/bench
	@kept=0; for each in $(BENCHES); do \
		$(RELEASE)/bin/$$each --out build/bench || kept=1; \
	done; exit $$kept

format:
	@scripts/deps build lint
	@scripts/format

lint:
	@scripts/deps build lint
	@JOBS=$(JOBS) scripts/lint

install:
	@scripts/deps build
	cmake --preset release -DCMAKE_INSTALL_PREFIX="$(abspath $(PREFIX))"
	cmake --build --preset release --parallel $(JOBS)
	cmake --install $(RELEASE)

clean:
	rm -rf build
