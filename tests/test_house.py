"""What holds for the whole checkout."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command

CHECKOUT = Path(__file__).resolve().parent.parent

IMPORT_EVERYTHING = """
import importlib, pkgutil, sys
import django
django.setup()
import apps, benchbench
for package in (apps, benchbench):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)
print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def test_no_module_imports_a_heavy_library_until_it_is_used() -> None:
    """Every command and every web process would pay its seconds and its memory."""
    done = subprocess.run([sys.executable, "-c", IMPORT_EVERYTHING], cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    imported = set(done.stdout.split())
    assert {"apps", "benchbench", "django"} <= imported
    assert not imported & {
        "bm25s",
        "chromadb",
        "ir_datasets",
        "ir_measures",
        "scipy",
        "sentence_transformers",
        "torch",
        "transformers",
    }


@pytest.mark.django_db
def test_the_migrations_match_the_models() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


@pytest.mark.parametrize(
    ("file", "row"), [(".env.example", r"^#? ?([A-Z_]+)="), ("docs/configuration.md", r"^\| `([A-Z_]+)` \|")]
)
def test_every_setting_is_described(file: str, row: str) -> None:
    read = set()
    for module in (CHECKOUT / "benchbench").rglob("*.py"):
        read |= set(re.findall(r'(?:env_\w+|environ\.get|environ)[(\[]"([A-Z_]+)"', module.read_text()))
    described = set(re.findall(row, (CHECKOUT / file).read_text(), re.MULTILINE))
    assert "BENCHBENCH_DATA_DIR" in read
    assert read - {"DJANGO_SETTINGS_MODULE"} <= described


def test_make_without_a_target_lists_the_targets() -> None:
    listed = subprocess.run(["make"], cwd=CHECKOUT, env=os.environ, capture_output=True, text=True, check=True).stdout
    for target in ("demo", "test", "fuzz", "install", "run", "worker", "lint", "openapi", "perf", "clean"):
        assert f"make {target} " in listed
