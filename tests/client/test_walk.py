"""What docs/api.md shows to be typed: a walk from signing in to a gate with curl, and what goes on from there."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

pytestmark = pytest.mark.thorough

CHECKOUT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_the_walk_with_curl_goes_as_it_is_told(ada: User, site: str, manage: Any, tmp_path: Path) -> None:
    for program in ("bash", "curl", "jq"):
        if shutil.which(program) is None:
            pytest.skip(f"There is no {program} here: install it (Debian: apt-get install {program}).")
    blocks = BLOCK.findall((CHECKOUT / "docs" / "api.md").read_text(encoding="utf-8"))
    script = "".join(text for kind, text in blocks if kind == "sh").replace("http://127.0.0.1:8000", site)
    assert site in script
    manage("manage.py", "worker")
    command = ["bash", "-eu", "-o", "pipefail", "-c", script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "".join(text for kind, text in blocks if kind == "text")
    assert (tmp_path / "results.csv").read_text(encoding="utf-8-sig").count("\n") == 4
