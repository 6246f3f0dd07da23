"""The light wheel: what it weighs, needs and does where neither a site nor the checkout is."""

import zipfile
from email import message_from_bytes

import pytest

from tests.wheel import build, list_needs, run

LIST_PACKAGES = "from importlib.metadata import distributions; print(*(one.name for one in distributions()))"
IMPORT_EVERYTHING = """
import importlib, pkgutil, sys
import benchbench
for module in pkgutil.walk_packages(benchbench.__path__, "benchbench."):
    if not module.name.endswith(("__main__", "mcp_server")):  # of the extra `mcp`, which this environment lacks
        importlib.import_module(module.name)
assert "site-packages" in benchbench.__file__
print(len([name for name in sys.modules if name.startswith("benchbench.")]))
print(*sorted({"apps", "django", "rq", "torch", "psycopg"} & {name.partition(".")[0] for name in sys.modules}))
"""


def test_wheel_is_small_and_needs_httpx_alone(wheel):
    assert wheel.stat().st_size < 1_000_000
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = (message_from_bytes(archive.read(name)) for name in names if name.endswith("/METADATA"))
    assert [need for need in metadata.get_all("Requires-Dist") if "extra ==" not in need] == ["httpx<0.29,>=0.28"]
    assert {"score", "mcp", "site"} <= set(metadata.get_all("Provides-Extra"))
    assert {name.partition("/")[0] for name in names} == {"benchbench", f"benchbench-{metadata['Version']}.dist-info"}
    assert "benchbench/settings.py" not in names


@pytest.mark.thorough
def test_two_builds_have_equal_bytes(tmp_path):
    moment = {"SOURCE_DATE_EPOCH": "1700000000"}
    first, second = build(tmp_path / "1", **moment), build(tmp_path / "2", **moment)
    assert [path.suffix for path in first] == [".whl", ".gz"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert first[0].read_bytes() != build(tmp_path / "3", SOURCE_DATE_EPOCH="1800000000")[0].read_bytes()


def test_bare_wheel_has_the_client(bare_python, tmp_path):
    installed = run(bare_python, "-c", LIST_PACKAGES, cwd=tmp_path).stdout.split()
    assert set(installed) - {"pip", "setuptools"} == {"benchbench", "httpx", *list_needs("httpx", set())}
    assert run(bare_python, "-c", "import benchbench.client", cwd=tmp_path).stderr == ""
    listed = run(bare_python, "-m", "benchbench", cwd=tmp_path)
    assert (listed.returncode, listed.stderr) == (0, "")
    for name in ("score", "audit", "gate", "wait", "upload", "run", "results", "export"):
        assert f"\n  {name} " in listed.stdout
    assert "Django" not in listed.stdout
    lacking = run(bare_python, "-m", "benchbench", "score", "--qrels", "a", "--run", "b", cwd=tmp_path)
    assert (lacking.returncode, lacking.stderr) == (
        2,
        "score needs the package numpy: pip install 'benchbench[score]'\n",
    )
    unknown = run(bare_python, "-m", "benchbench", "gates", cwd=tmp_path)
    assert (unknown.returncode, unknown.stderr) == (2, "The command 'gates' does not exist; did you mean gate?\n")


def test_every_module_of_the_wheel_imports(scoring_python, tmp_path):
    process = run(scoring_python, "-I", "-c", IMPORT_EVERYTHING, cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    modules, site = process.stdout.splitlines()
    assert int(modules) > 80
    assert site == ""


def test_wheel_scores_files(scoring_python, tmp_path):
    (tmp_path / "qrels.txt").write_text("q1 0 d1 1\nq1 0 d2 0\nq2 0 d3 2\nq3 0 d9 1\n")
    (tmp_path / "bm25.run").write_text("q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 0.5 t\nq2 Q0 d3 1 .1 t\n")
    script = scoring_python.parent / "benchbench"
    process = run(script, "score", "--qrels", "qrels.txt", "--run", "bm25.run", "-m", "RR", "P@1", cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines()[:2] == ["RR   0.5000", "P@1  0.3333"]
    (tmp_path / "same.run").write_text((tmp_path / "bm25.run").read_text())
    process = run(script, "audit", "bm25.run", "same.run", "--qrels", "qrels.txt", cwd=tmp_path)
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout.startswith("bm25.run and same.run are not distinguishable. No realistic number")
