"""The wheel, built and installed outside the checkout: by pip alone, or with links to packages that are here."""

import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.checkout import CHECKOUT

INSTALLED = "BENCHBENCH_WHEEL_FOLDER"  # with environments `bare` and `score`, into which pip installed the wheel


def build(folder: Path, **environment: str) -> list[Path]:
    """Build wheel and sdist into a folder, and return them by name."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=CHECKOUT, env=os.environ | environment, check=True, capture_output=True)
    return sorted(folder.iterdir())


def list_needs(name: str, extras: set[str], lines: Sequence[str] = ()) -> set[str]:
    """Return the distributions that one with these extras needs by its metadata or the `lines`, and that those need."""
    requirements = map(Requirement, lines or distribution(name).requires or [])
    needs: set[str] = set()
    for needed in requirements:
        if not needed.marker or any(needed.marker.evaluate({"extra": extra}) for extra in extras or {""}):
            needs |= {needed.name} | list_needs(needed.name, needed.extras)
    return needs


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return next(path for path in build(tmp_path_factory.mktemp("dist")) if path.suffix == ".whl")


def install(wheel: Path, folder: Path, *extras: str) -> Path:
    """Return the interpreter of an environment with the wheel, its needs and those of its extras, and nothing else."""
    if INSTALLED in os.environ:
        return Path(os.environ[INSTALLED], *(extras or ["bare"]), "bin", "python")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index", "--no-deps"]
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # which may have it already
    subprocess.run([*pip, str(wheel)], env=alone, check=True, capture_output=True)
    link_needs(folder, *extras)
    return python


def link_needs(folder: Path, *extras: str) -> None:
    """Link what the wheel that an environment has needs into it."""
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    metadata = next(site.glob("benchbench-*.dist-info")) / "METADATA"
    lines = metadata.read_text(encoding="utf-8").splitlines()
    ours = [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")]
    for name in list_needs("benchbench", {"", *extras}, ours):
        for top in {file.parts[0] for file in distribution(name).files or [] if file.parts[0] not in ("..", "/")}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(distribution(name).locate_file(top))))


@pytest.fixture(scope="session")
def bare_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with the wheel and httpx."""
    return install(wheel, tmp_path_factory.mktemp("bare"))


@pytest.fixture(scope="session")
def scoring_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with the extra `score`."""
    return install(wheel, tmp_path_factory.mktemp("scoring"), "score")


def run(python: Path, *arguments: str, cwd: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the interpreter outside the checkout, without its path."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "DJANGO_SETTINGS_MODULE")}
    command = [str(python), *arguments]
    return subprocess.run(command, cwd=cwd, env=env | environment, capture_output=True, text=True, timeout=180)
