# SPDX-License-Identifier: Apache-2.0
# A thin front door: CMake builds, CTest and pytest test. Every target can be had without make, see CONTRIBUTING.md.

PREFIX       ?= /usr/local
PYTHON       ?= python3
FUZZ_SECONDS ?= 60
# How long each fuzz target runs in `make check`, where clang is there.
CHECK_FUZZ_SECONDS ?= 5
JOBS         ?= $(shell nproc 2>/dev/null || echo 2)
PYTEST_FLAGS ?= -q -n $(JOBS)
SITE         ?= site
# Such as --only monkey,nginx --case small.
CONTEST_FLAGS ?=

export PYTHON
.NOTPARALLEL:
.DEFAULT_GOAL := help
.PHONY: help run check release dev fuzz install docs format bench contest contest-full clean
.PHONY: need-build need-check need-fuzz need-bench need-contest

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 22

run: release ## build the server and serve the welcome site (SITE=folder for another one)
	@exec build/release/monkey $(SITE)

check: need-check dev release ## build and run all tests
	@cmake --build build/release --target test_handlers
	@status=0; \
	if command -v clang >/dev/null; then $(MAKE) --no-print-directory fuzz FUZZ_SECONDS=$(CHECK_FUZZ_SECONDS) || status=1; fi; \
	ctest --preset dev -j $(JOBS) || status=1; \
	tools/dev/h2spec.sh build/h2spec; \
	tools/dev/venv.sh build/venv tests/requirements.txt && \
	build/venv/bin/python -m pytest -c tests/pytest.ini $(PYTEST_FLAGS) tests || status=1; \
	exit $$status

release: build/release/build.ninja ## the optimised program, build/release/monkey
	@cmake --build build/release

dev: need-check build/dev/build.ninja ## the program with sanitizers, and the unit tests
	@cmake --build build/dev

fuzz: need-fuzz build/fuzz/build.ninja ## look for inputs that break the parsers (FUZZ_SECONDS=60 each)
	@cmake --build build/fuzz
	@tools/dev/fuzz.sh build/fuzz $(FUZZ_SECONDS)

bench: need-bench release ## the contest of a few cases with those nearest to us, and instructions (docs/performance.md)
	@$(call hold_contest,$(BENCH_FLAGS))
	@$(PYTHON) tools/bench/instructions.py build/release/monkey

contest: need-contest release ## the quick contest of web servers, within 10 minutes, and its report (docs/guide/contest.md)
	@$(call hold_contest,--quick)

contest-full: need-contest release ## all of its cases, within 45 minutes
	@$(call hold_contest,)

BENCH_FLAGS = --only monkey,floor,nginx,lighttpd,h2o --case small,logged,medium,close,idle,tls,h2

# The record is kept, and reported, also when the run is interrupted.
define hold_contest
	trap : INT; \
	folder=$(abspath build/contest)/$$(date +%Y-%m-%d-%H%M%S); \
	tools/contest/contest.sh run $(1) --output "$$folder" $(CONTEST_FLAGS) >/dev/null; status=$$?; \
	[ -e "$$folder/record.json" ] || [ -e "$$folder/record.json.gz" ] || exit $$status; \
	tools/contest/contest.sh report "$$folder" >/dev/null || status=1; \
	printf 'The report:  %s\nIn short:    %s\nRaw data:    %s\n' "$$folder/report.html" "$$folder/summary.md" "$$folder"; \
	exit $$status
endef

install: need-build ## install below PREFIX=/usr/local (and DESTDIR)
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX)
	@cmake --build build/release
	@cmake --install build/release

docs: release ## write docs/reference/ anew from the tables of program and plugins, and from the headers
	@cmake --build build/release --target docs
	@$(PYTHON) tools/docgen/api.py

format: ## put every C file into the common format
	@find src include plugins duda tools tests examples -name '*.[ch]' 2>/dev/null | xargs clang-format-14 -i

clean: ## remove everything that was built
	rm -rf build

build/%/build.ninja: CMakePresets.json | need-build
	@cmake --preset $*
	@touch $@

need-build:
	@tools/dev/need.sh build

need-check:
	@tools/dev/need.sh build plugins check

need-bench:
	@tools/dev/need.sh build plugins bench

need-contest:
	@tools/dev/need.sh build plugins contest

need-fuzz:
	@tools/dev/need.sh build fuzz
