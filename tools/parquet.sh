#!/bin/bash
# Builds the Parquet plug-in beside the binary: tools/parquet.sh BUILD_FOLDER [PRESET]
#
# Arrow comes from the pyarrow wheel of PyPI, which has headers and libraries, set up once in
# .parquet (about 45 MB to download). The version is pinned here. With PRESET the build folder is
# configured by it first.
set -euo pipefail
cd "$(dirname "$0")/.."
version=26.0.1
folder=${1:?BUILD_FOLDER}

if [ ! -e ".parquet/pyarrow-$version" ]; then
  rm -rf .parquet
  python3 -m venv .parquet || {
    echo "python3 cannot make a virtual environment; on Debian: apt install python3-venv" >&2
    exit 2
  }
  .parquet/bin/python -m pip install --quiet --no-cache-dir --no-deps "pyarrow==$version"
  touch ".parquet/pyarrow-$version"
fi
package=$(.parquet/bin/python -c 'import pyarrow; print(list(pyarrow.__path__)[0])')
if [ $# -gt 1 ]; then cmake --preset "$2" >/dev/null; fi
cmake -S . -B "$folder" -DFLUX_PYARROW="$package" >/dev/null
ninja -C "$folder" flux_parquet
