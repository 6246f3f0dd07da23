"""The command line: `benchbench …`, `python -m benchbench …` and `manage.py …` are one and the same."""

import os
import sys

# These read and write files of the checkout only. Everything else may use PostgreSQL or Redis.
WITHOUT_SERVICES = {"help", "version", "makemessages", "compilemessages", "collectstatic", "startapp"}
ASKS_FOR_HELP = {"-h", "--help", "--version"}


def main() -> None:
    """Run the command in `sys.argv`: `score` at once, any other by Django, with its services where it may need them."""
    if sys.argv[1:2] == ["score"]:
        from benchbench.scoring.command import main as score

        sys.exit(score(sys.argv[2:]))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchbench.settings")
    if needs_services(sys.argv[1:]):
        _start_services()

    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


def needs_services(arguments: list[str]) -> bool:
    """Tell whether the command `arguments` may use a service; completing a word in a shell does not."""
    if not arguments or "DJANGO_AUTO_COMPLETE" in os.environ or ASKS_FOR_HELP.intersection(arguments):
        return False
    return arguments[0] not in WITHOUT_SERVICES


def _start_services() -> None:
    from benchbench import embedded

    try:
        embedded.ensure()
    except embedded.EmbeddedError as error:
        print(error, file=sys.stderr)
        if sys.argv[1] != "check":  # which goes on, to report what else is wrong
            sys.exit(1)
