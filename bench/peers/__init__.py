"""The other systems of the comparison. Each module runs inside the environment of its peer."""
