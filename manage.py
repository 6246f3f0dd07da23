#!/usr/bin/env python
"""Django's command line, with the embedded services running wherever a command may need them."""

import os
import sys

from benchbench import embedded

# These read and write files of the checkout only. Everything else may use PostgreSQL or Redis.
WITHOUT_SERVICES = {"help", "version", "makemessages", "compilemessages", "collectstatic", "startapp"}
ASKS_FOR_HELP = {"-h", "--help", "--version"}


def needs_services(arguments: list[str]) -> bool:
    """Tell whether the command `arguments` may use a service; completing a word in a shell does not."""
    if not arguments or "DJANGO_AUTO_COMPLETE" in os.environ or ASKS_FOR_HELP.intersection(arguments):
        return False
    return arguments[0] not in WITHOUT_SERVICES


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchbench.settings")
    if needs_services(sys.argv[1:]):
        try:
            embedded.ensure()
        except embedded.EmbeddedError as error:
            print(error, file=sys.stderr)
            if sys.argv[1] != "check":  # which goes on, to report what else is wrong
                sys.exit(1)

    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
