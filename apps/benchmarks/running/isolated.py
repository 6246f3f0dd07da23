"""Isolated execution: query by query and run by run through the whole path, for honest latencies."""

import random
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from itertools import product

from apps.benchmarks.measuring.batch_values import Measuring
from apps.benchmarks.measuring.final_list import FinalList
from apps.benchmarks.planning import plan_of, query_units
from apps.benchmarks.running.outcomes import Noted, Outcome, note
from apps.benchmarks.running.rankings import final_lists
from apps.benchmarks.running.work import Work
from apps.benchmarks.sources import shared_lists
from apps.datasets.models import Query
from apps.operations.leasing import Lease
from apps.retrieval.llms.answers import keeping_no_answers, passing_by_answers
from benchbench.ir.planning.plan import Plan
from benchbench.ir.planning.stages import AskStage, RewriteStage

TOLD_SECONDS = 2  # seldom: nothing else is to disturb what is timed
_asked_before: deque[str] = deque(maxlen=256)  # runs whose language model this process has asked for warming up


def run_queries(work: Work, measuring: Measuring) -> tuple[list[FinalList], dict[str, list[Outcome]], Noted]:
    """Do each (repetition, query, run) alone, runs in an order shuffled per query by the benchmark's seed.

    The first query is done once before, unmeasured, so that models and caches are warm. The batch has its host to
    itself: its payload says `alone`. The exact counterparts of approximate runs are searched with the first repetition
    only. Between queries the lease is told, with what `measuring` makes of the rankings so far: a batch may take long,
    and its runs have no values before it ends but these.
    """
    benchmark, queries, lease = work.benchmark, work.queries, work.lease
    plans = {str(run.pk): plan_of([run]) for run in work.runs}
    own = {str(run.pk): shared_lists([run], plans[str(run.pk)])[0] for run in work.runs}
    lists: list[FinalList] = []
    outcomes: dict[str, list[Outcome]] = {}
    notes: Noted = {}
    telling = Telling(lease, measuring)
    done = 0
    _warm_up(work, plans)
    for repetition, (number, query) in product(range(1, benchmark.runs_per_query + 1), enumerate(queries)):
        for key in _shuffled(list(plans), benchmark.seed, query, repetition):
            stages = work.stages([query], encode_afresh=True)
            with passing_by_answers() if repetition > 1 else nullcontext():  # else all would answer as the first
                made = stages.run(plans[key].only([key], truth=repetition == 1))
            lists += final_lists([own[key]], made, [query.pk], work.indexes, max_k=work.max_k, repetition=repetition)
            done += query_units(plans[key])
            lease.report(done)
            _keep(outcomes, made, number, repetition)
            for stage_key, told in stages.notes.items() if repetition == 1 else ():
                for name, more in told.items():
                    note(notes, stage_key, name, more)
        telling.tell(lists, done)
    return lists, outcomes, notes


def _warm_up(work: Work, plans: Mapping[str, Plan]) -> None:
    """Do the first query once, unmeasured. A language model, which may cost money, is asked so once in this process."""
    with keeping_no_answers():  # else the first query measured would be answered with the time of a cold model
        for key, plan in plans.items():
            if key in _asked_before:
                continue
            work.stages(work.queries[:1], tolerant=True, faults=None).run(plan.only([key], truth=False))
            if any(isinstance(stage, AskStage | RewriteStage) for stage in plan.stages):
                _asked_before.append(key)


class Telling:
    """Tells the lease of a batch, at most every TOLD_SECONDS, what its rankings add to the provisional means."""

    def __init__(self, lease: Lease, measuring: Measuring) -> None:
        self._lease, self._measuring = lease, measuring
        self._counted = 0
        self._told = time.monotonic()

    def tell(self, lists: Sequence[FinalList], done: int) -> None:
        if time.monotonic() - self._told < TOLD_SECONDS:
            return
        self._measuring.add(lists[self._counted :])
        self._counted = len(lists)
        self._lease.report(done, {"runs": self._measuring.told()}, always=True)
        self._told = time.monotonic()


def _keep(outcomes: dict[str, list[Outcome]], made: dict[str, list[Outcome]], number: int, repetition: int) -> None:
    """Collect the lists of the first repetition, as shared execution has them: per stage, a list over the queries.

    Runs of different depth share the key of an exact stage; the longest list is kept.
    """
    for key, (alone,) in made.items() if repetition == 1 else ():
        lists = outcomes.setdefault(key, [])
        if len(lists) == number:
            lists.append(alone)
        elif not alone.error and (lists[number].error or len(alone.value) > len(lists[number].value)):
            lists[number] = alone


def _shuffled(keys: list[str], seed: int, query: Query, repetition: int) -> list[str]:
    random.Random(f"{seed}:{query.key}:{repetition}").shuffle(keys)
    return keys
