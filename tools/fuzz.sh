#!/bin/bash
# Builds every fuzz target (tests/fuzz/<name>_fuzz.cc) with clang and runs each for SECONDS:
#   tools/fuzz.sh [seconds] [name ...]
# What it finds stays in build-fuzz/corpus/<name>; an input that breaks something is written to
# build-fuzz/<kind>-<hash>: mend the bug and add that file to tests/fuzz/corpus/<name>.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
cmake --preset fuzz >/dev/null
ninja -j "${JOBS:-2}" -C build-fuzz fuzz_targets
tools/parquet.sh build-fuzz || echo "note: no Parquet plug-in; the target parquet does nothing"
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  for source in tests/fuzz/*_fuzz.cc; do
    names+=("$(basename "$source" _fuzz.cc)")
  done
fi
for name in "${names[@]}"; do
  mkdir -p "build-fuzz/corpus/$name"
  echo "fuzzing $name for $seconds s"
  "build-fuzz/bin/${name}_fuzz" -max_total_time="$seconds" -timeout=10 -print_final_stats=1 \
    -artifact_prefix=build-fuzz/ "build-fuzz/corpus/$name" "tests/fuzz/corpus/$name"
done
