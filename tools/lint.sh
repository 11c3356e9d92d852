#!/bin/bash
# The linters: clang-tidy-14 on C++ files changed since BASE, ruff and mypy --strict on all Python,
# tools/tidy.py on everything. ALL=1 checks every C++ file.
#
# BASE defaults to the point where this branch left main, or the commit before on main itself.
# ruff and mypy live in .venv-tools, at the versions of tools/requirements.txt. They are not part of
# `make test`, so that testing needs no package source but Debian's.
set -euo pipefail
cd "$(dirname "$0")/.."
failed=0

base() {
  if [ -n "${BASE:-}" ]; then
    echo "$BASE"
    return
  fi
  local main point
  for main in origin/main main; do
    point=$(git merge-base HEAD "$main" 2>/dev/null) || continue
    [ "$point" = "$(git rev-parse HEAD)" ] || { echo "$point"; return; }
  done
  git rev-parse -q --verify HEAD~1 || git rev-parse HEAD
}

changed() {
  if [ -n "${ALL:-}" ]; then
    git ls-files --cached --others --exclude-standard -- '*.cc' '*.h'
  else
    git diff --name-only --diff-filter=d "$(base)" -- '*.cc' '*.h'
    git ls-files --others --exclude-standard -- '*.cc' '*.h'
  fi
}

# A header is checked through the unit that proves that it compiles alone.
units() {
  local path
  while read -r path; do
    case $path in
      *.h) echo "$PWD/build/header_alone/$(tr -c 'A-Za-z0-9_\n' _ <<<"$path").cc" ;;
      *) echo "$PWD/$path" ;;
    esac
  done
}

cmake --preset test -DFLUX_BENCH=ON --log-level=WARNING >/dev/null
known=$(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' build/compile_commands.json | sort -u)
files=$(changed | sort -u | units)
checked=$(comm -12 <(sort -u <<<"$files") <(echo "$known"))
count=$(grep -c . <<<"$checked" || true)
echo "clang-tidy: $count files"
if [ "$count" -gt 0 ]; then
  # Flags that only GCC knows are no reason to stop.
  xargs -r -d '\n' -n 1 -P "${JOBS:-2}" clang-tidy-14 -p build --quiet \
    --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-ignored-optimization-argument \
    <<<"$checked" 2> >(grep -v 'warnings generated\|warning generated' >&2) || failed=1
fi
unbuilt=$(comm -23 <(sort -u <<<"$files") <(echo "$known") | sed '/^$/d')
[ -z "$unbuilt" ] || printf 'note: not in any target, so not checked:\n%s\n' "$unbuilt"

if ! cmp -s tools/requirements.txt .venv-tools/requirements.txt; then
  echo "setting up .venv-tools (ruff, mypy)"
  rm -rf .venv-tools
  python3 -m venv .venv-tools
  .venv-tools/bin/pip install -q --disable-pip-version-check -r tools/requirements.txt
  cp tools/requirements.txt .venv-tools/
fi
mapfile -t python < <(git ls-files --cached --others --exclude-standard -- '*.py')
echo "ruff, mypy: ${#python[@]} files"
.venv-tools/bin/ruff check --quiet "${python[@]}" || failed=1
# Scripts import what lies beside them.
export MYPYPATH=bench:tests/e2e:tests/chaos:tests/netns
.venv-tools/bin/mypy --config-file mypy.ini --no-error-summary "${python[@]}" || failed=1

echo "tools/tidy.py"
python3 tools/tidy.py || failed=1
[ "$failed" -eq 0 ] && echo "lint: clean" || echo "lint: failed"
exit "$failed"
