#!/bin/bash
# Runs the tests and ends with a summary: tools/test.sh all | asan | tsan
#
#   all    formatting, everything built, every test that is not labelled slow, those whose code is
#          chosen by the CPU once more for each lesser CPU, then the short lists below under the
#          sanitizers
#   asan   all unit and simulator tests under the address and undefined-behaviour sanitizers
#   tsan   the same under the thread sanitizer
# A part that fails does not stop the next ones; the exit status is 1 if any failed.
set -uo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-2}
export NINJA_STATUS='[%f/%t %es] '

# Libraries (flux/<name>, its unit tests), simulator tests (sim.<name>) and replays of fuzz targets
# (fuzz.<name>) of the short parts: for memory errors those that parse bytes and lay out rows, for
# races those that hand work to threads. The target of services would link most of flux.
short_asan="base rpc storage protocol table data checkpoint job"
for source in tests/fuzz/*_fuzz.cc; do
  name=$(basename "$source" _fuzz.cc)
  [ "$name" = services ] || short_asan+=" fuzz.$name"
done
short_tsan="base rpc storage protocol client server worker"
# Libraries with kernels that are chosen by the instruction set, and those that run on them.
chosen_by_cpu="nn|optimizer|worker|data"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 summary=""

# part NAME COMMAND...: runs it, and notes how it went.
part() {
  local name=$1 start=$SECONDS state=ok
  shift
  echo
  echo "== $name"
  "$@" || state=FAILED
  [ $state = ok ] || bad=1
  summary+=$(printf '  %-12s %-7s %4d s' "$name" $state $((SECONDS - start)))$'\n'
  [ $state = ok ]
}

# run_ctest [PREFIX...] -- ARGUMENTS...: counts come from ctest's closing line.
run_ctest() {
  local status=0 bad_here all_here prefix=()
  while [ "$1" != -- ]; do
    prefix+=("$1")
    shift
  done
  shift
  "${prefix[@]}" ctest --output-on-failure --no-tests=error -j "$jobs" "$@" 2>&1 |
    tee "$work/log" || status=1
  local closing='s/.*tests passed, \([0-9]*\) tests failed out of \([0-9]*\)$/\1 \2/p'
  read -r bad_here all_here < <(sed -n "$closing" "$work/log")
  failed=$((failed + ${bad_here:-0}))
  passed=$((passed + ${all_here:-0} - ${bad_here:-0}))
  return $status
}

build() { cmake --preset "$1" && ninja -j "$jobs" -C "$2" "${@:3}"; }

# sanitized PRESET [LIBRARY...]: builds and runs unit and simulator tests, or only those named.
sanitized() {
  local preset=$1 name targets=() tests=() folder=build-$1
  shift
  for name in "$@"; do
    if [ -n "$(find "flux/$name" -name '*_test.cc' 2>/dev/null)" ]; then
      targets+=("${name}_test") tests+=("unit\\.$name")
    elif [ -f "tests/sim/${name#sim.}_test.cc" ]; then
      targets+=("sim_${name#sim.}_test") tests+=("sim\\.${name#sim.}")
    elif [ -f "tests/fuzz/${name#fuzz.}_fuzz.cc" ]; then
      targets+=("${name#fuzz.}_fuzz") tests+=("fuzz\\.${name#fuzz.}")
    else
      echo "note: '$name' has no tests; nothing of it runs here"
    fi
  done
  [ $# -gt 0 ] || targets=(test_programs)
  build "$preset" "$folder" "${targets[@]}" || return 1
  # Both need a predictable address space; where we may not ask for one, they do without.
  local fixed=() supp=""
  if setarch -R true 2>/dev/null; then fixed=(setarch -R); fi
  [ ! -f tools/tsan.supp ] || supp=":suppressions=$PWD/tools/tsan.supp"
  [ ! -f tools/lsan.supp ] || export LSAN_OPTIONS="suppressions=$PWD/tools/lsan.supp"
  # No detect_stack_use_after_return: with it GCC 12 misaligns 64-byte variables (bug 110027).
  export ASAN_OPTIONS="detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=0"
  export UBSAN_OPTIONS="print_stacktrace=1" TSAN_OPTIONS="halt_on_error=1$supp"
  local only=(-L '^(unit|sim)$')
  [ $# -eq 0 ] || only+=(-R "^($(IFS='|'; echo "${tests[*]}"))\$")
  run_ctest "${fixed[@]}" -- --test-dir "$folder" "${only[@]}" -LE '^slow$'
}

# Under FLUX_ISA, for every instruction set below that of this CPU; names those above it.
lesser_cpus() {
  local level here status=0 above=""
  here=$(build/bin/base_test --gtest_filter=none | sed -n 's/^instruction set: //p')
  for level in avx2 avx512 bf16 amx; do
    if [ "$level" = "$here" ]; then
      above=yes
    elif [ -n "$above" ]; then
      untested+=" $level"
    else
      echo "-- FLUX_ISA=$level"
      run_ctest env "FLUX_ISA=$level" -- --test-dir build -R "^unit\\.($chosen_by_cpu)\$" ||
        status=1
    fi
  done
  [ -n "$above" ] || return 1
  return $status
}

bad=0 untested=""
case ${1:-} in
  all)
    part format tools/format.sh --check
    if part build build test build; then
      # Without the network the tests of Parquet are skipped.
      tools/parquet.sh build || echo "note: no Parquet plug-in; its tests are skipped"
      part tests run_ctest -- --test-dir build -LE '^slow$'
      part "lesser CPUs" lesser_cpus
    fi
    # shellcheck disable=SC2086
    part "asan, short" sanitized asan $short_asan
    # shellcheck disable=SC2086
    part "tsan, short" sanitized tsan $short_tsan
    ;;
  asan | tsan) part "$1" sanitized "$1" ;;
  *) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac

echo
printf '%s' "$summary"
[ -z "$untested" ] || echo "untested, as this CPU lacks them: the kernels for$untested"
echo "$passed passed, $failed failed in $SECONDS s"
[ $bad -eq 0 ] || echo "FAILED"
exit $bad
