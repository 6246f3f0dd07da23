"""The command line: `benchbench …`, `python -m benchbench …` and `manage.py …` are one and the same.

In the checkout it has the commands of the site, in the light wheel those of `benchbench.client.commands`; in both those
of files.
"""

import os
import sys
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

from benchbench import SOFTWARE
from benchbench.busy import open_outputs

CHECKOUT = Path(__file__).resolve().parent.parent
HAS_SITE = (CHECKOUT / "manage.py").is_file()
# These read and write files of the checkout only. Everything else may use PostgreSQL or Redis.
WITHOUT_SERVICES = {"help", "version", "makemessages", "compilemessages", "collectstatic", "startapp"}
ASKS_FOR_HELP = {"-h", "--help", "--version"}
# The commands that need files alone, with their modules.
SCORE = "Measure a file of results by a file of judgments; needs no database."
AUDIT = "Say what run files and judgments, or two means, can support; needs no database."
OF_FILES = {"score": ("benchbench.scoring.command", SCORE), "audit": ("benchbench.scoring.audit", AUDIT)}
# These commands create the tables, inspect them or do not need them. All others need the tables of this version.
WITHOUT_TABLES = {
    *("migrate", "makemigrations", "showmigrations", "optimizemigration", "squashmigrations", "sqlmigrate", "demo"),
    *("check", "shell", "dbshell", "inspectdb", "sqlflush", "sqlsequencereset", "createcachetable", "diffsettings"),
    *("findstatic", "startproject", "sendtestemail", "spectacular", "generateschema", "test", "testserver"),
    *("backup", "restore", "serve"),
}
WAITS = "worker"  # takes nothing while the tables do not fit
# The rooms whose commands are listed, in the order of their use.
ROOMS = ("demo", "collections", "datasets", "mappings", "retrieval", "benchmarks", "results", "operations")


def main() -> None:
    """Run the command in `sys.argv`: of files or of the client directly, others by Django with its services."""
    open_outputs()
    if Path(sys.argv[0]).name == "__main__.py":  # the command to type, for usage messages
        sys.argv[0] = "benchbench"
    arguments = sys.argv[1:]
    if arguments and arguments[0] in OF_FILES:
        sys.exit(_run_on_files(*arguments))
    if arguments in (["--version"], ["version"]):
        print(SOFTWARE)
        return
    completing = "DJANGO_AUTO_COMPLETE" in os.environ  # a word, in a shell
    if not completing and (not arguments or arguments[0] in ("-h", "--help")):
        print(describe_commands(Path(sys.argv[0]).name))
        return
    if not HAS_SITE:
        sys.exit(_run_on_site(arguments))
    from benchbench.process import collect_less

    collect_less()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchbench.settings")
    if needs_services(arguments):
        _start_services()
    if not completing and (sentence := suggest_command(arguments[0])):
        print(sentence, file=sys.stderr)
        sys.exit(2)
    if needs_services(arguments) and arguments[0] not in WITHOUT_TABLES:
        _require_tables(arguments[0])

    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


def describe_commands(program: str) -> str:
    """Return the list of commands with a line each, as `program` prints it without a command."""
    listed = {**list_commands(), **{name: summary for name, (_, summary) in OF_FILES.items()}}
    width = max(map(len, listed))
    lines = [f"  {name:<{width}}  {summary}" for name, summary in listed.items()]
    return "\n".join(
        [
            f"usage: {program} COMMAND [OPTIONS]",
            "",
            "Measure search: from judged queries to a verdict.",
            "",
            *lines,
            "",
            f"`{program} COMMAND --help` describes a command.",
            *([f"Django's own commands, such as migrate and createsuperuser, are in `{program} help`."] * HAS_SITE),
        ]
    )


def list_commands() -> dict[str, str]:
    """Return BenchBench's own commands with the line that says what each does: the docstring of its module.

    Read from the files, since importing them takes a second.
    """
    if not HAS_SITE:
        from benchbench.client.commands import COMMANDS  # and httpx, which takes a tenth of a second

        return {name: command.summary for name, command in COMMANDS.items()}
    folders = [CHECKOUT / "apps" / room / "management" / "commands" for room in ROOMS]
    modules = [path for folder in folders for path in sorted(folder.glob("[a-z]*.py"))]
    return {path.stem: path.read_text(encoding="utf-8").split('"""')[1].splitlines()[0] for path in modules}


def suggest_command(name: str) -> str:
    """Return the message for an unknown command, with the most similar one; "" for a known command."""
    names = {*list_commands(), *OF_FILES}
    if HAS_SITE and name not in names:
        if name.startswith("-") or name in ("help", "version"):
            return ""
        import django
        from django.core.management import get_commands

        django.setup()  # so that the commands of installed apps are known too
        names |= set(get_commands())
    if name in names:
        return ""
    near = get_close_matches(name, sorted(names), n=1)
    return f"The command {name!r} does not exist" + (
        f"; did you mean {near[0]}?" if near else "; benchbench --help lists them."
    )


def _run_on_files(name: str, *arguments: str) -> int:
    """Run a command that needs files alone, and return its exit status: 2 without the packages of the extra `score`."""
    try:
        status: int = import_module(OF_FILES[name][0]).main(arguments)
    except ModuleNotFoundError as error:
        print(f"{name} needs the package {error.name}: pip install 'benchbench[score]'", file=sys.stderr)
        return 2
    return status


def _run_on_site(arguments: list[str]) -> int:
    from benchbench.client.commands import main as call_site

    if sentence := suggest_command(arguments[0]):
        print(sentence, file=sys.stderr)
        return 2
    return call_site(arguments)


def needs_services(arguments: list[str]) -> bool:
    """Return whether the command `arguments` may use a service. Shell completion does not use one."""
    if not arguments or "DJANGO_AUTO_COMPLETE" in os.environ or ASKS_FOR_HELP.intersection(arguments):
        return False
    return arguments[0] not in WITHOUT_SERVICES


def _start_services() -> None:
    from benchbench import embedded
    from benchbench.environment import read_secrets

    try:
        read_secrets()
        embedded.ensure()
    except embedded.EmbeddedError as error:
        print(error, file=sys.stderr)
        if sys.argv[1] != "check":  # which continues, to report further problems
            sys.exit(1)


def _require_tables(name: str) -> None:
    """Exit with a message, and with the status by which the command `name` reports failure."""
    import django
    from django.core.management import get_commands, load_command_class

    from benchbench.database.tables import explain_unusable

    django.setup()
    if sentence := explain_unusable(Path(sys.argv[0]).name, waits=name == WAITS):
        print(sentence, file=sys.stderr)
        sys.exit(getattr(load_command_class(get_commands()[name], name), "error_status", 1))
