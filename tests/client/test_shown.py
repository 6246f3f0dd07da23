"""What README.md and docs/api.md show to be typed goes as it is informed."""

import re
import shutil
import subprocess

import pytest

from apps.collections.models import Collection
from apps.records.models import Benchmark
from apps.verdicts.gates.baselines import approve
from benchbench.client import Client, pipeline
from tests.checkout import CHECKOUT
from tests.wheel import run

pytestmark = pytest.mark.thorough

PROGRAM = re.search(r"```python\n(.*?)```", (CHECKOUT / "README.md").read_text(encoding="utf-8"), re.DOTALL)

ABSENT = ('"search_modes": ["dense", "hybrid"]', '"use_reranker": [True], "rerankers": ["nobody/no-such-model"]')
UNDECIDED = "slices: {'category: none': {ndcg@10: 0.8}}"
# The rules, what of the program is another, its exit status, and the end of what it says on stdout or stderr.
ENDS = [
    ("floors: {ndcg@10: 0.8}", ("", ""), 0, "## Gate passed"),
    ("floors: {ndcg@10: 0.95}", ("", ""), 1, "## Gate failed"),
    (UNDECIDED, ("", ""), 2, "## Gate"),
    ("floors: {ndcg@10: 0.8}", ABSENT, 2, "or give the path of its folder in a command."),
    ("floors: {ndcg@10: 0.8}", ("Handbook", "Yearbook"), 2, "No collection named 'Yearbook' was found."),
    ("floors: {ndcg@10: 0.8}", ("timeout=3600", "timeout=0"), 2, "It is still running after 0 s. benchmark: "),
]


def test_ten_line_pipeline_returns_the_verdict_as_exit_status(
    ada, site, manage, token, library, questions_file, bare_python
):
    """They do so where nothing but the wheel and httpx is installed, and time and again."""
    assert sum(bool(line.strip()) for line in PROGRAM[1].splitlines()) == 10
    Collection.objects.update(name="Handbook")
    manage("manage.py", "worker")
    folder = questions_file.parent
    make_baseline(Client(site, token=token), library, questions_file, ada)
    for rules, change, status, message in ENDS:
        (folder / "gate.yaml").write_text(rules)
        (folder / "pipeline.py").write_text(PROGRAM[1].replace(*change))
        process = run(bare_python, "pipeline.py", cwd=folder, BENCHBENCH_URL=site, BENCHBENCH_TOKEN=token)
        assert process.returncode == status, process.stderr + process.stdout
        assert message in (process.stderr or process.stdout)
        assert "Traceback" not in process.stderr
        assert ("benchmark: completed, 2 of 2 runs\n## Gate" in process.stdout) == ("## Gate" in message)


def test_failed_pipeline_step_exits_with_a_message(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("benchbench.client.connection.FIRST_PAUSE", 0.001)
    monkeypatch.delenv("BENCHBENCH_URL", raising=False)
    for address, message in (("http://127.0.0.1:9", "that the site is running"), (None, "set BENCHBENCH_URL")):
        with pytest.raises(SystemExit, match="2"), pipeline(address) as bench:
            bench.find_collection("Handbook")
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"), pipeline("http://127.0.0.1:9") as bench:
        bench.upload(tmp_path / "not there.json", name="Support questions")
    assert "not there.json" in capsys.readouterr().err


def make_baseline(client, library, file, by):
    mapping = client.resolve(client.map(client.upload(file, name="Support questions"), library.pk))
    benchmark = client.create_benchmark("of May", mapping, {"search_modes": ["sparse"]})
    client.wait(client.start(benchmark))
    approve(Benchmark.objects.get(pk=benchmark["id"]).runs.get(), name="main", reason="The release of May.", by=by)


BLOCK = re.compile(r"^```(sh|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_documented_curl_walkthrough_works(ada, site, manage, tmp_path):
    for program in ("bash", "curl", "jq"):
        if shutil.which(program) is None:
            pytest.skip(f"There is no {program} here: install it (Debian: apt-get install {program}).")
    blocks = BLOCK.findall((CHECKOUT / "docs" / "api.md").read_text(encoding="utf-8"))
    script = "".join(text for kind, text in blocks if kind == "sh").replace("http://127.0.0.1:8000", site)
    assert site in script
    manage("manage.py", "worker")
    command = ["bash", "-eu", "-o", "pipefail", "-c", script]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout == "".join(text for kind, text in blocks if kind == "text")
    assert (tmp_path / "results.csv").read_text(encoding="utf-8-sig").count("\n") == 4
