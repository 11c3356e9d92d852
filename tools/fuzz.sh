#!/bin/bash
# Builds every fuzz target (tests/fuzz/<name>_fuzz.cc) with clang and runs each for SECONDS, one a
# core at a time (JOBS of them):
#   tools/fuzz.sh [seconds] [name ...]
# What it finds stays in build-fuzz/corpus/<name>, what a target says in build-fuzz/<name>.log; an
# input that breaks something is written to build-fuzz/<kind>-<hash>: mend the bug and add that file
# to tests/fuzz/corpus/<name>.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
jobs=${JOBS:-2}
cmake --preset fuzz >/dev/null
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  for source in tests/fuzz/*_fuzz.cc; do
    names+=("$(basename "$source" _fuzz.cc)")
  done
fi
ninja -j "$jobs" -C build-fuzz "${names[@]/%/_fuzz}"
if [[ " ${names[*]} " == *" parquet "* ]]; then
  tools/parquet.sh build-fuzz || echo "note: no Parquet plug-in; the target parquet does nothing"
fi

fuzz_one() {
  local name=$1 seconds=$2 log=build-fuzz/$1.log
  mkdir -p "build-fuzz/corpus/$name"
  echo "fuzzing $name for $seconds s"
  if ! "build-fuzz/bin/${name}_fuzz" -max_total_time="$seconds" -timeout=10 -print_final_stats=1 \
    -artifact_prefix=build-fuzz/ "build-fuzz/corpus/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1
  then
    tail -n 40 "$log"
    echo "$name: NOT clean, see $log"
    return 1
  fi
  echo "$name: clean, $(awk '/^Done/ {print $2 " runs in " $5 " s"}' "$log")"
}
export -f fuzz_one
printf '%s\n' "${names[@]}" | xargs -P "$jobs" -I{} bash -c "fuzz_one {} $seconds"
