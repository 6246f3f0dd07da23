#!/usr/bin/env python
"""Django's command line under the name that Django's own documents use; see `benchbench.cli`."""

from benchbench.cli import main

if __name__ == "__main__":
    main()
