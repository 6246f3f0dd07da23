"""The science of BenchBench: plain Python and NumPy, no Django, no database, no clock."""
