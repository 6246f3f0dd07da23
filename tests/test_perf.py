"""Scripts and mutants of perf/ fit the code. What they measure takes minutes, and is not run here."""

import ast
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from perf.mutations import MUTANTS, Mutant, MutantError, mutated

ROOT = Path(__file__).resolve().parent.parent
SHARED = {"figures", "mutations", "pairings", "throwaway"}  # what scripts import
SCRIPTS = sorted(one for one in (ROOT / "perf").glob("*.py") if one.stem not in SHARED)


@pytest.mark.thorough
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda one: one.stem)
def test_perf_scripts_import_and_print_usage(script, monkeypatch, capsys):
    no_site = SimpleNamespace(open_site=lambda: None, ROOT=script.parent.parent)
    monkeypatch.setitem(sys.modules, "throwaway", no_site)
    monkeypatch.syspath_prepend(script.parent)  # as Python does for a script: one may take from another
    monkeypatch.setattr(sys, "argv", [str(script), "--help"])
    if script.stem == "gpu":
        monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    result = runpy.run_path(str(script))
    assert callable(result["main"])
    if "argparse" in result:
        with pytest.raises(SystemExit, match="0"):
            result["main"]()
        assert "usage:" in capsys.readouterr().out


def names_of_tests(path):
    """Return the tests of a module as pytest names them, without its path and without parameters."""
    hits = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ClassDef):
            hits |= {f"{node.name}::{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            hits.add(node.name)
    return hits


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_it_applies_once_and_its_tests_are_there(mutant):
    text = (ROOT / mutant.file).read_text()
    compile(mutated(mutant, text), mutant.file, "exec")
    assert mutant.tests
    for test in mutant.tests:
        path, _, name = test.partition("::")
        assert name in names_of_tests(ROOT / path)


def test_its_names_are_unique():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("count", [0, 2])
def test_a_text_that_does_not_occur_once_is_refused(count):
    mutant = Mutant("loud", "It shouts.", "apps/voice.py", {"whisper": "shout"}, [])
    with pytest.raises(MutantError, match=f"loud does not apply: apps/voice.py has this text {count} times"):
        mutated(mutant, "whisper()\n" * count)
