"""What holds for every command: it teaches itself, and says by its exit status what came of it."""

import io
import re
import subprocess
import sys
import time

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand, CommandError

from apps.operations.commands import UseCaseCommand
from benchbench import cli
from benchbench.busy import busy, clean_line, clean_text
from benchbench.errors import BenchbenchError
from benchbench.scoring import audit as auditing
from benchbench.scoring import command as scoring
from tests.checkout import CHECKOUT

COMMANDS = sorted(name for name, app in get_commands().items() if str(app).startswith("apps."))
REPORTING = sorted(set(COMMANDS) - {"demo", "serve", "worker"})  # these print as they go
DJANGOS = {option for action in BaseCommand().create_parser("", "")._actions for option in action.option_strings}
NOTHING = (None, False, "", [], "==SUPPRESS==")


def load(name):
    command = load_command_class(get_commands()[name], name)
    assert isinstance(command, UseCaseCommand)
    return command


def parser_of(name):
    module = {"score": scoring, "audit": auditing}.get(name)
    return module._build_parser() if module else load(name).create_parser("benchbench", name)


@pytest.mark.parametrize("name", [*COMMANDS, "score", "audit"])
def test_its_help_teaches(name):
    parser = parser_of(name)
    answer = parser.format_help()
    assert parser.description
    assert re.search(rf"^  benchbench {name}\b", answer, re.MULTILINE), "an example"
    assert "exit status:" in answer.lower()
    assert max(map(len, (parser.description or "").splitlines())) <= 120
    for example in re.findall(r"^  benchbench (.*(?:\\\n.*)?)", answer, re.MULTILINE):
        assert example.split()[0] in {*COMMANDS, "score", "audit"}
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


@pytest.mark.parametrize("name", COMMANDS)
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
    ("failure", "status", "message"),
    [
        (BenchbenchError("There is no such mapping."), 1, "There is no such mapping.\n"),
        (CommandError("Gate failed: 1 failed, of 7 checks.", returncode=2), 2, "Gate failed: 1 failed, of 7 checks.\n"),
        (UseCaseCommand().misuse("--a goes with --b."), 2, "--a goes with --b.\n"),
        (KeyboardInterrupt(), 130, "Interrupted.\n"),
    ],
)
def test_failure_prints_one_message_and_sets_the_status(failure, status, message, capsys, monkeypatch):
    monkeypatch.setattr("django.core.management.base.connections.close_all", lambda: None)  # the test's own
    command = Ending()
    command.failure = failure
    with pytest.raises(SystemExit) as ended:
        command.run_from_argv(["benchbench", "ending"])
    assert ended.value.code == status
    assert capsys.readouterr().err == message


def test_every_command_has_its_line_in_the_list():
    assert sorted(cli.list_commands()) == COMMANDS
    commands = cli.describe_commands("benchbench")
    for name in (*COMMANDS, "score"):
        assert re.search(rf"^  {name} +[A-Z][^\n]+\.$", commands, re.MULTILINE), name
    assert max(map(len, commands.splitlines())) <= 120


def run(*arguments):
    command = [sys.executable, "-m", "benchbench", *arguments]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)


def test_without_a_command_it_lists_them():
    bare, requests = run(), run("--help")
    assert (bare.returncode, bare.stdout) == (0, requests.stdout)
    assert bare.stdout.startswith("usage: benchbench COMMAND")


@pytest.mark.parametrize("name", ["gate", "score"])
@pytest.mark.thorough
def test_run_as_a_module_it_has_its_name(name):
    assert run(name, "--help").stdout.startswith(f"usage: benchbench {name} ")


@pytest.mark.thorough
def test_unknown_command_exits_2_and_suggests_a_name():
    process = run("run_benchmrk", "scifact")
    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr == "The command 'run_benchmrk' does not exist; did you mean run_benchmark?\n"
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
    stored = clean_text(f"ünï\n\tone{obeyed}two")
    assert stored.startswith("ünï\n\tone ")
    assert stored.replace("\n", "").replace("\t", "").isprintable()


def test_on_one_line_there_are_single_spaces():
    assert clean_line(" a\x1b[1m\n\n b ") == "a [1m b"
