#!/bin/bash
# Compares with well-known packages what the tests compare with small golden files: tools/compare.sh
# [NAME...]. Each tests/compare/<name>.sh gets a Python environment with what
# tests/compare/requirements-<name>.txt pins (made once, in .compare/) and runs in the repository.
set -euo pipefail
cd "$(dirname "$0")/.."
cache=${FLUX_COMPARE_CACHE:-.compare}

names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  for file in tests/compare/*.sh; do
    name=${file##*/}
    names+=("${name%.sh}")
  done
fi
for name in "${names[@]}"; do
  requirements=tests/compare/requirements-$name.txt
  folder=$cache/$name
  if ! cmp -s "$requirements" "$folder/requirements.txt"; then
    rm -rf "$folder"
    python3 -m venv "$folder"
    "$folder/bin/pip" install --quiet --no-deps --requirement "$requirements"
    cp "$requirements" "$folder/requirements.txt"
  fi
  echo "compare $name"
  PYTHON=$(realpath -s "$folder/bin/python") bash -euo pipefail "tests/compare/$name.sh"
done
