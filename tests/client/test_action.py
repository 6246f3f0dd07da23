"""The jobs of GitHub and GitLab that judge a gate, run with bash as their runners do, against a live site."""

import os
import re
import subprocess
import sys

import pytest
import yaml

from benchbench.client import Client
from tests.checkout import CHECKOUT
from tests.wheel import INSTALLED, link_needs

pytestmark = pytest.mark.thorough

ACTION = yaml.safe_load((CHECKOUT / "action.yml").read_text(encoding="utf-8"))
STEPS = ACTION["runs"]["steps"]
EXAMPLES = re.findall(r"```yaml\n(.*?)```", (CHECKOUT / "docs/gates.md").read_text(encoding="utf-8"), re.DOTALL)
NAME = """nightly"; touch hacked; $(touch hacked) `touch hacked` '--json"""
# The rules, other inputs, the exit status, and the beginning of the summary.
ENDS = [
    ("floors: {ndcg@5: 0.8}", {}, 0, "## Gate passed"),
    ("floors: {ndcg@5: 0.99}", {"run": "all"}, 1, "## Gate failed"),
    ("slices: {'category: none': {ndcg@5: 0.8}}", {"run": "1"}, 2, "## Gate"),
    ("floors: {ndcg@5: 0.8}", {"baseline": "$(touch hacked)"}, 2, "The gate was not judged"),
]


def offline(wheel):
    """The environment of a pip that installs the wheel and nothing else, unless the test may use an index."""
    return {} if INSTALLED in os.environ else {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1"}


def run_bash(script, folder, environment):
    base = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(folder / "script.sh")]
    (folder / "script.sh").write_text(script)
    return subprocess.run(
        command, cwd=folder, env=base | environment, capture_output=True, text=True, encoding="utf-8", timeout=180
    )


def run_step(step, inputs, folder, environment):
    """Run a step of the action with its inputs as a runner gives them."""
    assert "${{" not in step["run"], "an input in a script"
    filled = {
        name: inputs[value.removeprefix("${{ inputs.").removesuffix(" }}")] for name, value in step["env"].items()
    }
    return run_bash(step["run"], folder, environment | filled)


@pytest.fixture
def benchmark(site, token, manage, library, questions_file):
    """A completed benchmark whose name is hostile to a shell."""
    manage("manage.py", "worker")
    with Client(site, token=token) as client:
        mapping = client.resolve(client.map(client.upload(questions_file, name="fruits"), library.pk))
        matrix = {"search_modes": ["dense"], "k_values_for_metrics": [5], "primary_k": 5}
        created = client.create_benchmark(NAME, mapping, matrix)
        client.wait(client.start(created), timeout=120)
    return created


def test_action_ends_with_the_status_of_the_gate(benchmark, site, token, tmp_path, wheel):
    folder, temporary = tmp_path / "work tree", tmp_path / "temp"
    folder.mkdir()
    temporary.mkdir()
    path = CHECKOUT if INSTALLED in os.environ else wheel
    environment = {"RUNNER_TEMP": str(temporary), "GITHUB_ACTION_PATH": str(path)} | offline(wheel)
    installed = run_step(STEPS[0] | {"env": {}}, {}, folder, environment)
    assert installed.returncode == 0, installed.stderr
    link_needs(temporary / "benchbench")
    defaults = {name: declared.get("default", "") for name, declared in ACTION["inputs"].items()}
    for number, (rules, changed, status, beginning) in enumerate(ENDS):
        (folder / "gate.yaml").write_text(rules)
        files = {name: str(tmp_path / f"{name}{number}") for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
        inputs = defaults | {"url": site, "token": token, "benchmark": NAME} | changed
        process = run_step(STEPS[1], inputs, folder, environment | files)
        assert process.returncode == status, process.stdout + process.stderr
        assert (tmp_path / f"GITHUB_STEP_SUMMARY{number}").read_text().startswith(beginning)
        assert (tmp_path / f"GITHUB_OUTPUT{number}").read_text() == f"status={status}\n"
        assert token not in process.stdout + process.stderr
    assert not [*tmp_path.rglob("hacked")]


def test_documented_use_has_the_inputs_of_the_action():
    (use,) = yaml.safe_load(next(text for text in EXAMPLES if "uses:" in text))
    required = {name for name, declared in ACTION["inputs"].items() if declared.get("required")}
    assert required <= set(use["with"]) <= set(ACTION["inputs"])


def test_documented_gitlab_job_judges(benchmark, site, token, tmp_path, wheel):
    job = yaml.safe_load(next(text for text in EXAMPLES if "image:" in text))["gate"]
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "image")], check=True)
    variables = {"BENCHBENCH_TOKEN": token, "BENCHBENCH_WHEEL": str(wheel), "CI_COMMIT_SHA": NAME}
    path = f"{tmp_path / 'image' / 'bin'}:{os.environ['PATH']}"
    environment = job["variables"] | {"BENCHBENCH_URL": site, "PATH": path} | variables | offline(wheel)
    install, judge = job["script"]
    assert run_bash(install, tmp_path, environment).returncode == 0
    link_needs(tmp_path / "image")
    (tmp_path / "gate.yaml").write_text("floors: {ndcg@5: 0.8}")
    process = run_bash(judge.replace("--baseline main ", ""), tmp_path, environment)
    assert process.returncode == 0, process.stderr
    assert (tmp_path / job["artifacts"]["paths"][0]).read_text().startswith("## Gate passed")
