"""Pages of the runs of a benchmark that differ in one axis, with their quality and time along it."""
