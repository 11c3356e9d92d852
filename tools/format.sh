#!/bin/bash
# Formats all C++ files with clang-format-14; with --check only names those that are not formatted.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" = --check ]; then
  mode=(--dry-run -Werror)
else
  mode=(-i)
fi
folders=()
for folder in flux plugins tests bench; do
  [ ! -d "$folder" ] || folders+=("$folder")
done
find "${folders[@]}" \( -name '*.cc' -o -name '*.h' \) -print0 |
  xargs -0 -r -n 20 -P 2 clang-format-14 --style=file "${mode[@]}"
