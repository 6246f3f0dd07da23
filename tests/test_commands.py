"""What holds for every command: it teaches itself, and says by its exit status what came of it."""

import io
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand, CommandError

from apps.operations.commands import UseCaseCommand
from benchbench import cli
from benchbench.busy import busy, clean_line, clean_text
from benchbench.errors import BenchbenchError
from benchbench.scoring import command as scoring

CHECKOUT = Path(__file__).resolve().parent.parent
OWN = sorted(name for name, app in get_commands().items() if str(app).startswith("apps."))
REPORTING = sorted(set(OWN) - {"demo", "worker"})  # these print as they go
DJANGOS = {option for action in BaseCommand().create_parser("", "")._actions for option in action.option_strings}
NOTHING = (None, False, "", [], "==SUPPRESS==")


def load(name):
    command = load_command_class(get_commands()[name], name)
    assert isinstance(command, UseCaseCommand)
    return command


def parser_of(name):
    return scoring._build_parser() if name == "score" else load(name).create_parser("benchbench", name)


@pytest.mark.parametrize("name", [*OWN, "score"])
def test_its_help_teaches(name):
    parser = parser_of(name)
    told = parser.format_help()
    assert parser.description
    assert re.search(rf"^  benchbench {name}\b", told, re.MULTILINE), "an example"
    assert "exit status:" in told.lower()
    assert max(map(len, (parser.description or "").splitlines())) <= 120
    for example in re.findall(r"^  benchbench (.*(?:\\\n.*)?)", told, re.MULTILINE):
        assert example.split()[0] in {*OWN, "score"}
    for action in parser._actions:
        if DJANGOS.intersection(action.option_strings):
            continue
        described = f"{action.option_strings or action.dest}: {action.help}"
        assert action.help, described
        if action.default not in NOTHING:
            assert "default" in action.help, described


@pytest.mark.parametrize("name", REPORTING)
def test_it_reports_to_programs_too(name):
    assert "--json" in parser_of(name).format_help()


@pytest.mark.parametrize("name", OWN)
def test_unknown_option_exits_with_status_2(name, capsys):
    with pytest.raises(SystemExit) as ended:
        load(name).run_from_argv(["benchbench", name, "--no-such-option"])
    assert ended.value.code == 2
    assert "usage: benchbench " in capsys.readouterr().err


class Ending(UseCaseCommand):
    requires_system_checks: list[str] = []
    failure: Exception

    def act(self, **options):
        raise self.failure


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("failure", "status", "said"),
    [
        (BenchbenchError("There is no such mapping."), 1, "There is no such mapping.\n"),
        (CommandError("Gate failed: 1 failed, of 7 checks.", returncode=2), 2, "Gate failed: 1 failed, of 7 checks.\n"),
        (UseCaseCommand().misuse("--a goes with --b."), 2, "--a goes with --b.\n"),
        (KeyboardInterrupt(), 130, "Interrupted.\n"),
    ],
)
def test_failure_prints_one_message_and_sets_the_status(failure, status, said, capsys, monkeypatch):
    monkeypatch.setattr("django.core.management.base.connections.close_all", lambda: None)  # the test's own
    command = Ending()
    command.failure = failure
    with pytest.raises(SystemExit) as ended:
        command.run_from_argv(["benchbench", "ending"])
    assert ended.value.code == status
    assert capsys.readouterr().err == said


def test_every_command_has_its_line_in_the_list():
    assert sorted(cli.list_commands()) == OWN
    told = cli.describe_commands("benchbench")
    for name in (*OWN, "score"):
        assert re.search(rf"^  {name} +[A-Z][^\n]+\.$", told, re.MULTILINE), name
    assert max(map(len, told.splitlines())) <= 120


def run(*arguments):
    command = [sys.executable, "-m", "benchbench", *arguments]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)


def test_without_a_command_it_lists_them():
    bare, asked = run(), run("--help")
    assert (bare.returncode, bare.stdout) == (0, asked.stdout)
    assert bare.stdout.startswith("usage: benchbench COMMAND")


@pytest.mark.parametrize("name", ["gate", "score"])
@pytest.mark.thorough
def test_run_as_a_module_it_has_its_name(name):
    assert run(name, "--help").stdout.startswith(f"usage: benchbench {name} ")


@pytest.mark.thorough
def test_unknown_command_exits_2_and_suggests_a_name():
    done = run("run_benchmrk", "scifact")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "The command 'run_benchmrk' does not exist; did you mean run_benchmark?\n"
    assert cli.suggest_command("xyzzy") == "The command 'xyzzy' does not exist; benchbench --help lists them."
    assert not any(cli.suggest_command(name) for name in ("gate", "migrate", "createsuperuser", "runserver", "help"))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_unbounded_work_shows_activity_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    terminal, file = Terminal(), io.StringIO()
    with busy(terminal, "Measuring [x]"):
        while len(re.findall(r"Measuring \[x\] ….*?0:00:0\d", terminal.getvalue())) < 2:
            time.sleep(0.01)
    assert terminal.getvalue().endswith("\r\x1b[1A\x1b[2K")
    with busy(file, "Measuring"):
        pass
    assert file.getvalue() == ""


@pytest.mark.parametrize("obeyed", ["\x1b[2J", "\r", "\x07", "\x9b31m", "\u202e", "\0"])
def test_printable_keeps_line_breaks_and_drops_control_characters(obeyed):
    kept = clean_text(f"ünï\n\tone{obeyed}two")
    assert kept.startswith("ünï\n\tone ")
    assert kept.replace("\n", "").replace("\t", "").isprintable()


def test_on_one_line_there_are_single_spaces():
    assert clean_line(" a\x1b[1m\n\n b ") == "a [1m b"
