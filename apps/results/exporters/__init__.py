"""The formats of results: a module for each, or for several similar ones. `apps.results.exporting` lists them."""
