"""The rooms of BenchBench, each a Django app; `docs/architecture.md` says which may import which."""
