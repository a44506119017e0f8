# SPDX-License-Identifier: Apache-2.0
# A thin front door: CMake builds, CTest and pytest test. You can have every target without make, see CONTRIBUTING.md.

PREFIX       ?= /usr/local
PYTHON       ?= python3
# What `run`, `release` and `install` build: `release`, with every library of docs/guide/building.md, or `libc`, with none.
PRESET       ?= release
# What `amalgamation` contains.
PROFILE      ?= std
FUZZ_SECONDS ?= 60
# How long each fuzz target runs in `make check`, where clang is there.
CHECK_FUZZ_SECONDS ?= 2
SITE         ?= site
# Such as --only monkey,nginx --case small.
CONTEST_FLAGS ?=

BUILD = tools/dev/build.sh

# JOBS and PYTEST_FLAGS may be given, too; tools/dev/test.sh has their defaults.
export PYTHON CHECK_FUZZ_SECONDS
.NOTPARALLEL:
.DEFAULT_GOAL := all
.PHONY: all help run test check check-server check-benchmark release tools amalgamation dev fuzz install install-tools uninstall docs tidy format bench contest contest-full clean
.PHONY: need-server need-check need-fuzz need-bench need-contest venv

help: ## print this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 22

all: release ## the same as release, and print the next steps
	@printf '%s\n' 'The program is build/$(PRESET)/monkey. Next:' '  make run            serve the welcome site' \
	  '  sudo make install   install it below $(PREFIX)' '  make help           all other targets'

run: release ## build the server and serve the welcome site (SITE=folder for another one)
	@exec build/$(PRESET)/monkey $(SITE)

test: dev venv ## run the tests for daily work, within 2 minutes: unit tests, house tests, some of the black box tests
	@tools/dev/test.sh quick

check: need-check ## build and run all tests
	@tools/dev/test.sh build
	@tools/dev/test.sh all

check-server: need-check ## the same without the tests of the benchmark tools, which have separate requirements
	@tools/dev/test.sh build server
	@tools/dev/test.sh server

check-benchmark: need-check dev ## build and run the tests of the benchmark tools: wr, pace, the contest
	@tools/dev/venv.sh build/benchmark-venv tests/benchmark/requirements.txt
	@tools/dev/test.sh benchmark

release: need-server ## build the optimized server, build/release/monkey (PRESET=libc: without libraries, in build/libc)
	@$(BUILD) $(PRESET) server

tools: need-server ## build wr and pace, which measure servers, in build/release
	@$(BUILD) release -DMK_TOOLS=ON tools

amalgamation: need-server ## write libmonkey as two files, monkey.c and monkey.h, to build/amalgamation (PROFILE=std, or another preset)
	@$(BUILD) $(PROFILE) mime_table.c
	@"$(PYTHON)" tools/package/amalgamate.py --build build/$(PROFILE) --out build/amalgamation

dev: need-check ## build the program with sanitizers, and the unit tests
	@$(BUILD) dev

fuzz: need-fuzz ## search for inputs that break the parsers (FUZZ_SECONDS=60 each)
	@$(BUILD) fuzz fuzzers
	@tools/dev/fuzz.sh build/fuzz $(FUZZ_SECONDS)

bench: need-bench release tools ## run a short contest with the closest competitors, and count instructions (docs/performance.md)
	@$(call hold_contest,$(BENCH_FLAGS))
	@$(PYTHON) tools/bench/instructions.py build/release/monkey

contest: need-contest release tools ## run the quick contest of web servers, within 10 minutes, and write its report (docs/guide/contest.md)
	@$(call hold_contest,--quick)

contest-full: need-contest release tools ## run all cases of the contest, within 45 minutes
	@tools/contest/data/install.sh || true
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

install: need-server ## install below PREFIX=/usr/local (and DESTDIR): server, plugins, library, manual, configuration
	@$(BUILD) $(PRESET) -DCMAKE_INSTALL_PREFIX=$(PREFIX) server lib pages
	@cmake --install build/$(PRESET)

install-tools: need-server ## install wr and pace
	@$(BUILD) release -DCMAKE_INSTALL_PREFIX=$(PREFIX) -DMK_TOOLS=ON tools
	@cmake --install build/release --component tools

uninstall: ## remove the installed files; keeps files that you changed
	@cmake -DPREFIX=$(PREFIX) -P packaging/uninstall.cmake

docs: need-server ## generate docs/reference/ from the tables of the program and the plugins, and from the headers
	@$(BUILD) release docs
	@$(PYTHON) tools/docgen/api.py

tidy: need-server ## format the code, and regenerate docs/reference/ and tests/house/abi.txt
	@tools/dev/tidy.sh

format: ## format every C file
	@tools/dev/format.sh

clean: ## remove everything that was built
	rm -rf build

venv:
	@tools/dev/venv.sh build/venv tests/requirements.txt

need-server:
	@tools/dev/need.sh build $(if $(filter libc,$(PRESET)),,--if-possible full)

need-check:
	@tools/dev/need.sh build full check

need-bench:
	@tools/dev/need.sh build full bench

need-contest:
	@tools/dev/need.sh build full contest

need-fuzz:
	@tools/dev/need.sh build fuzz
