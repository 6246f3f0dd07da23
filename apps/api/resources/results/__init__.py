"""Results over HTTP: figures of runs, comparisons, lost documents, exported files; imported by the addresses."""
