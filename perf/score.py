"""`benchbench score` of a TREC run of 1,000,000 lines, against ir_measures reading and measuring the same files.

Each is a process of its own, from its start to its last figure; the memory is the most it had resident.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
QUERIES, DEPTH, JUDGED, ROUNDS = 1_000, 1_000, 50, 5
NAMES = ["nDCG@10", "P@10", "R@100", "RR", "AP"]

INSTEAD = """
import json, sys
import ir_measures
measures = [ir_measures.parse_measure(name) for name in sys.argv[3:]]
qrels, run = ir_measures.read_trec_qrels(sys.argv[1]), ir_measures.read_trec_run(sys.argv[2])
values = ir_measures.calc_aggregate(measures, qrels, run)
print(json.dumps({"measures": {str(measure): value for measure, value in values.items()}}))
"""


def write_files(folder: Path) -> None:
    """A run in the order of its ranks, as programs write it, with ties; and qrels, half of them found."""
    rng = np.random.default_rng(3)
    with (folder / "qrels").open("w") as qrels, (folder / "run").open("w") as run:
        for query in range(QUERIES):
            documents = rng.permutation(10 * DEPTH)[:DEPTH]
            scores = -np.sort(-rng.gamma(4.0, 3.0, DEPTH)).round(3)
            run.writelines(
                f"{query} Q0 MED-{document:07} {rank} {score} bm25\n"
                for rank, (document, score) in enumerate(zip(documents, scores, strict=True), start=1)
            )
            unfound = rng.integers(10 * DEPTH, 20 * DEPTH, JUDGED // 2)
            for document in {*rng.choice(documents, JUDGED // 2, replace=False).tolist(), *unfound.tolist()}:
                qrels.write(f"{query} 0 MED-{document:07} {rng.integers(0, 4)}\n")


def measured(command: list[str]) -> tuple[dict[str, float], float, float]:
    """Figures, seconds, and the most memory resident, in GB."""
    with tempfile.TemporaryFile("w+") as out:
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, cwd=ROOT)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        if status:
            sys.exit(f"{command[:3]} ended with status {status}.")
        out.seek(0)
        return json.load(out)["measures"], seconds, used.ru_maxrss / 1e6


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        qrels, run = str(folder / "qrels"), str(folder / "run")
        ours = [sys.executable, "-m", "benchbench", "score", "--qrels", qrels, "--run", run, "--json"]
        acts = {
            "benchbench score": [*ours, *(word for name in NAMES for word in ("-m", name))],
            "ir_measures": [sys.executable, "-c", INSTEAD, qrels, run, *NAMES],
            "import numpy": [sys.executable, "-c", "import numpy; print('{\"measures\": {}}')"],
        }
        size = os.path.getsize(run) / 1e6
        rounds = [{act: measured(command) for act, command in acts.items()} for _ in range(ROUNDS)]
    print(f"{QUERIES * DEPTH:,} lines, {size:.0f} MB, {len(NAMES)} measures, median of {ROUNDS}, side by side")
    for act in acts:
        seconds = statistics.median(one[act][1] for one in rounds)
        ratio = statistics.median(one[act][1] / one["ir_measures"][1] for one in rounds)
        print(f"{act:>16} {seconds:6.2f} s  {ratio:5.2f} x  {max(one[act][2] for one in rounds):5.2f} GB")
    worst = max(abs(rounds[0]["benchbench score"][0][name] - rounds[0]["ir_measures"][0][name]) for name in NAMES)
    print(f"greatest difference of a mean: {worst:.1e}")


if __name__ == "__main__":
    main()
