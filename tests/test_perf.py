"""The scripts of perf/ still fit the code that they measure. What they measure takes minutes, and is not run here."""

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.thorough

SCRIPTS = sorted(set((Path(__file__).parent.parent / "perf").glob("*.py")))


@pytest.mark.parametrize("script", [one for one in SCRIPTS if one.stem != "throwaway"], ids=lambda one: one.stem)
def test_it_finds_what_it_imports_and_tells_of_its_arguments(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    no_site = SimpleNamespace(open_site=lambda: None, ROOT=script.parent.parent)
    monkeypatch.setitem(sys.modules, "throwaway", no_site)
    monkeypatch.syspath_prepend(script.parent)  # as Python does for a script: one may take from another
    monkeypatch.setattr(sys, "argv", [str(script), "--help"])
    if script.stem == "gpu":
        monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    found = runpy.run_path(str(script))
    assert callable(found["main"])
    if "argparse" in found:
        with pytest.raises(SystemExit, match="0"):
            found["main"]()
        assert "usage:" in capsys.readouterr().out
