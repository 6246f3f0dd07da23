"""The Django project, modules that all rooms share, the science (`ir`), file formats (`files`) and scoring."""
