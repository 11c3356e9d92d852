# Metrics on random data against scikit-learn and numpy, event files against TensorBoard's reader.
# PYTHON has the packages (tools/compare.sh).
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --preset test >/dev/null
ninja -C build metrics_test flux
"$PYTHON" tests/compare/metrics.py --cases 200 --seed 1 --out "$folder/cases.txt"
build/bin/metrics_test --gtest_filter='MetricCases.*' --cases="$folder/cases.txt"
build/flux data gen criteo --examples 20000 --out "$folder/data.tsv"
build/flux run examples/lr/job.yaml --set data.train="$folder/data.tsv" \
  --set data.test="$folder/data.tsv" --set output="$folder/out"
"$PYTHON" tests/compare/events.py "$folder/out"
