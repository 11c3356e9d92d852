"""The machinery of `make bench`: machine, processes, peers' environments, rows, targets, report."""
