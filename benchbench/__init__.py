"""The Django project, modules that all rooms share, the science (`ir`), file formats (`files`) and scoring."""

__version__ = "0.1.0"
SOFTWARE = f"BenchBench {__version__}"
