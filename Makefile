# One command for each habit; `make help` lists them. Everything is built by CMake and Ninja, the
# presets are in CMakePresets.json, and missing Debian packages are installed by tools/deps.sh.
JOBS ?= $(shell nproc)
NINJA = NINJA_STATUS='[%f/%t %es] ' ninja -j $(JOBS)
TRAIN = data/criteo/train.tsv
TEST = data/criteo/test.tsv
export JOBS

.DEFAULT_GOAL := build
.DELETE_ON_ERROR:
SEEDS ?= 100000
.PHONY: help deps build parquet run test sim netns chaos drill slow bench bench-table asan tsan fuzz fmt fmt-check \
        model tidy clean compare compare-optimizers compare-operators compare-metrics golden-operators \
        mutants

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

deps:  ## install the Debian packages that building and testing need
	@tools/deps.sh build test fmt

build:  ## build the binary: build/flux
	@tools/deps.sh build
	@test -f build/build.ninja || cmake --preset release
	@$(NINJA) -C build flux

parquet: build  ## build the Parquet plug-in beside the binary (sets up pinned pyarrow in .parquet)
	@tools/deps.sh parquet
	@tools/parquet.sh build

run: build $(TRAIN) $(TEST)  ## build, make data if there is none, train the CTR-DNN example
	build/flux run examples/ctr_dnn/job.yaml

$(TRAIN): GEN = --examples 1000000 --seed 1
$(TEST): GEN = --examples 100000 --seed 2
$(TRAIN) $(TEST): | build
	@mkdir -p $(@D)
	build/flux data gen criteo $(GEN) --out $(@D)/unfinished.$(@F)
	@mv $(@D)/unfinished.$(@F) $@

model: build  ## make data if there is none and train a model of models/: make model NAME=din
	@python3 -B tools/model.py $(or $(NAME),$(error say which model: make model NAME=din; build/flux models lists them))

test:  ## all tests but the slow ones, and a short part under the sanitizers
	@tools/deps.sh build test fmt
	@tools/test.sh all

asan:  ## unit and simulator tests under the address and undefined-behaviour sanitizers
	@tools/deps.sh build test
	@tools/test.sh asan

tsan:  ## unit and simulator tests under the thread sanitizer
	@tools/deps.sh build test
	@tools/test.sh tsan

CUTS ?= 18
netns:  ## train on hosts that are network namespaces: TLS, loss and delay, cut networks (needs root)
	@tools/deps.sh build test netns
	@cmake --preset test
	@$(NINJA) -C build flux netns_switch
	python3 -B tests/netns/netns.py --flux build/flux --switch build/bin/netns_switch --cuts $(CUTS) || test $$? = 77

chaos:  ## every fault that must not hurt, full counts (hours); ARGS="--only worker --short"
	@tools/deps.sh build test netns
	@cmake --preset test
	@$(NINJA) -C build flux netns_switch
	python3 -B tests/chaos/chaos.py --flux build/flux --results bench/results $(ARGS)

drill: build $(TRAIN) $(TEST)  ## train with a kill every 5 s; ends with the accounting line
	build/flux drill examples/ctr_dnn/job.yaml --run --fresh --set output=out/drill --set epochs=3 \
	  --kill worker --kill server --kill coordinator --every 5s

sim: build  ## SEEDS (default 100000) simulated clusters under faults, on all cores
	build/flux sim --seeds 1..$(SEEDS)

mutants:  ## show that tests notice wrong backward passes and update rules (slow); ARGS="--only fm"
	@tools/deps.sh build test
	python3 -B tools/mutate_ops.py $(ARGS)
	@test -n '$(ARGS)' || python3 -B tools/mutate_rules.py

fuzz: SECONDS ?= 60
fuzz:  ## hostile bytes for every parser, SECONDS=60 for each (clang)
	@tools/deps.sh build fuzz
	@tools/fuzz.sh $(SECONDS)

slow:  ## the slow tests, such as fifty kills in a row
	@tools/deps.sh build test
	@cmake --preset test
	@$(NINJA) -C build
	@ctest --test-dir build --output-on-failure --no-tests=error -L slow

# One line for each thing that is compared.
compare: compare-optimizers compare-operators compare-metrics  ## hold what is computed against torch, numpy and scikit-learn (sets those up on demand)

compare-optimizers:
	@tools/deps.sh build bench
	@cmake --preset test
	@$(NINJA) -C build optimizer_cases
	python3 -B tests/compare/with_torch.py tests/compare/update_rules.py --program build/bin/optimizer_cases

compare-operators:
	@tools/deps.sh build bench
	@cmake --preset test
	@$(NINJA) -C build operator_cases
	python3 -B tests/compare/with_torch.py tests/compare/operators.py --program build/bin/operator_cases

compare-metrics:
	@tools/deps.sh build bench
	@tools/compare.sh metrics

golden-operators:  ## the numbers of torch that make test replays, written anew
	python3 -B tests/compare/with_torch.py tests/compare/operators.py --golden tests/golden/operators.txt

bench-table:  ## the table at 10^8 keys; needs about 14 GB of free memory
	@tools/deps.sh build
	@cmake --preset bench
	@$(NINJA) -C build table_bench
	build/bin/table_bench --keys 100000000

bench:  ## build and run the benchmarks, beside the peers (sets those up on demand)
	@tools/deps.sh build bench
	@cmake --preset bench
	@$(NINJA) -C build
	python3 bench/run.py $(ARGS)

fmt:  ## format the C++ code
	@tools/deps.sh fmt
	@tools/format.sh

fmt-check:  ## say which C++ files are not formatted
	@tools/deps.sh fmt
	@tools/format.sh --check

tidy:  ## lint what changed since BASE (default: the main branch; ALL=1: everything)
	@tools/deps.sh build test tidy
	@ALL='$(ALL)' BASE='$(BASE)' tools/lint.sh

clean:  ## remove what was built, not data or models
	rm -rf build build-asan build-tsan build-fuzz
