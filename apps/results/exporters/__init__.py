"""The formats of results: a module for each, or for several alike. `apps.results.exporting` lists them."""
