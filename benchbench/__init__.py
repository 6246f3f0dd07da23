"""The Django project, what all rooms share, the science (`ir`), formats (`files`) and scoring."""
