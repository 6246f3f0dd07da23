"""Measures of 16 runs × 1,000 queries × depth 100, against ir_measures and bare pytrec_eval on the same rankings."""

import statistics
import time
from collections.abc import Callable

import ir_measures
import numpy as np
import pytrec_eval

from benchbench.ir.measures import Measure, Truths, evaluate

RUNS, QUERIES, DEPTH, ROUNDS = 16, 1_000, 100, 3
NAMES = [f"{name}@{k}" for name in ("nDCG", "P", "R") for k in (5, 10, 20)] + ["RR", "AP"]
TREC = {"ndcg_cut.5,10,20", "P.5,10,20", "recall.5,10,20", "recip_rank", "map"}

rng = np.random.default_rng(3)
rankings = [[rng.permutation(5_000)[:DEPTH] for _ in range(QUERIES)] for _ in range(RUNS)]
truths = [
    {int(document): int(rng.integers(0, 4)) for document in rng.permutation(5_000)[: rng.integers(1, 400)]}
    for _ in range(QUERIES)
]


def ours() -> np.ndarray:
    measures = [Measure.parse(name) for name in NAMES]
    prepared = Truths.from_grades(truths)
    return np.array([evaluate(measures, prepared.grade(run)) for run in rankings])


def bare_pytrec_eval() -> list[dict]:
    qrels = {str(query): {str(d): grade for d, grade in truth.items()} for query, truth in enumerate(truths)}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, TREC)
    return [
        evaluator.evaluate(
            {
                str(query): {str(d): float(DEPTH - rank) for rank, d in enumerate(ranking.tolist())}
                for query, ranking in enumerate(run)
            }
        )
        for run in rankings
    ]


def by_ir_measures() -> list[list[ir_measures.Metric]]:
    qrels = [
        ir_measures.Qrel(str(query), str(document), grade)
        for query, truth in enumerate(truths)
        for document, grade in truth.items()
    ]
    evaluator = ir_measures.evaluator([ir_measures.parse_measure(name) for name in NAMES], qrels)
    return [
        list(
            evaluator.iter_calc(
                ir_measures.ScoredDoc(str(query), str(document), float(DEPTH - rank))
                for query, ranking in enumerate(run)
                for rank, document in enumerate(ranking.tolist())
            )
        )
        for run in rankings
    ]


def timed(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def main() -> None:
    values, trec = ours(), bare_pytrec_eval()
    worst = max(
        abs(values[run, NAMES.index("nDCG@10"), query] - trec[run][str(query)]["ndcg_cut_10"])
        for run in range(RUNS)
        for query in range(QUERIES)
    )
    measured = [{name: timed(act) for name, act in ACTS.items()} for _ in range(ROUNDS)]
    print(f"{RUNS} runs x {QUERIES} queries x depth {DEPTH}, {len(NAMES)} measures, median of {ROUNDS}, side by side")
    for name in ACTS:
        seconds = statistics.median(one[name] for one in measured)
        ratio = statistics.median(one[name] / one["BenchBench"] for one in measured)
        print(f"{name:>16} {seconds:7.2f} s  {ratio:6.1f} x")
    print(f"greatest difference of nDCG@10 from pytrec_eval: {worst:.1e}")


ACTS = {"BenchBench": ours, "pytrec_eval": bare_pytrec_eval, "ir_measures": by_ir_measures}

if __name__ == "__main__":
    main()
