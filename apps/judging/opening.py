"""Opening a round: checking its options, reading its pool, creating its items."""

import math
from collections.abc import Mapping as MappingType
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, cast

import numpy as np
from django.contrib.auth.models import User
from django.db import connection, transaction

from apps.datasets.models import DatasetVersion
from apps.execution.defining.creating import require_current
from apps.judging.judges import RoundError, require_judges
from apps.judging.models import Grade, Round, RoundItem, RoundRun, Slot
from apps.judging.question import (
    OrderedItems,
    Question,
    Rankings,
    build_pool,
    find_passages,
    load_basis,
    order_items,
)
from apps.judging.scales import build_default_scale, list_grades, read_scale
from apps.judging.settling.renewing import enqueue_renewal
from apps.mappings.models import Mapping
from apps.records.measuring.again import lock_rankings
from apps.records.models import Run
from benchbench.access import usable
from benchbench.deleting import referring
from benchbench.durations import MIN_SAMPLES
from benchbench.ir.judging.orders import SHARE
from benchbench.ir.measures import Measure, MeasureError
from benchbench.ir.measures.means import has_lost_too_many, unranked_reason
from benchbench.reading.strict_json import attributes

USUAL_DEPTH = 10  # for a measure without a cutoff
MOST_DEPTH = 1000
MOST_ITEMS = 100_000
MOST_SEED = 2**31 - 1
USUAL_SECONDS = 10.0  # assumed per grade until grades exist
PACE_OF = 200  # latest grades that the pace is computed from
BATCH = 5000
SHARES = {"uniform_share": "The share of the uniform sample", "overlap": "The share of items that several judges grade"}


@dataclass(frozen=True, slots=True)
class RoundOptions:
    """Options of a new round. By default, the measure is nDCG at the primary k of the first run's benchmark.

    The default depth is the measure's cutoff, the default scale that of the dataset's grades.
    """

    name: str
    order: str = Round.Order.DECISIVE
    measure: str = ""
    depth: int | None = None
    budget: int | None = None
    uniform_share: float = SHARE
    seed: int = 42
    scale: Sequence[MappingType[str, object]] = ()
    guidelines: str = ""
    overlap: float = 0.0
    overlap_judges: int = 2
    blind: bool = True


def open_round(
    runs: Sequence[Run], options: RoundOptions, *, judges: Sequence[User], owner: User | None = None
) -> Round:
    """Open a round over completed runs of one mapping, judged by `judges`, by default the owner.

    Its items are the unjudged documents among the first `depth` of each run, each pair once. Opens nothing and raises
    RoundError, whose field is the invalid option, or ConflictError if the mapping is not resolved for the current
    dataset and collection.
    """
    plan = _plan(runs, options, judges, owner)
    mapping, question, query_ids = plan.mapping, plan.question, plan.query_ids
    placed = order_items(question, order=options.order, budget=options.budget, uniform_share=options.uniform_share)
    _check_items(len(placed.numbers), plan.depth, plan.version)
    with referring("The round"):
        lock_rankings(runs)
        opened = Round.objects.create(
            name=options.name.strip(),
            owner=owner,
            team=mapping.team,
            mapping=mapping,
            dataset_version=plan.version,
            depth=plan.depth,
            measure=str(question.measure),
            scale=plan.scale,
            **attributes(options, "order", "budget", "uniform_share", "seed", "guidelines"),
            **attributes(options, "overlap", "overlap_judges", "blind"),
            item_count=len(placed.numbers),
            pool_size=int(question.find_holes().sum()),
        )
        RoundRun.objects.bulk_create(RoundRun(round=opened, run=run) for run in runs)
        opened.judges.set(plan.judges)
        pairs = [
            (query_ids[pair.query], cast(int, pair.document)) for pair in map(question.pool.get_item, placed.numbers)
        ]
        _write(opened, placed, pairs, find_passages(plan.rankings))
        transaction.on_commit(lambda: enqueue_renewal(opened))
    return opened


@dataclass(frozen=True, slots=True)
class RoundPreview:
    """Size and time of a round. `seconds`: the median of the mapping's latest grades; USUAL_SECONDS if they are few."""

    pairs: int
    gradings: int
    judges: int
    depth: int
    measure: str
    seconds: float


def preview_round(
    runs: Sequence[Run], options: RoundOptions, *, judges: Sequence[User], owner: User | None = None
) -> RoundPreview:
    """Return the preview of a round; raise the errors of `open_round`."""
    plan = _plan(runs, options, judges, owner)
    pairs = int(plan.question.find_holes().sum())
    _check_items(pairs, plan.depth, plan.version)
    items = min(pairs, options.budget or pairs)
    shared = math.ceil(options.overlap * items) * (options.overlap_judges - 1)
    of_people = Grade.objects.filter(item__round__mapping=plan.mapping, source=Grade.Source.HUMAN)
    paced = of_people.filter(seconds__isnull=False).exclude(kind=Grade.Kind.SKIP)
    seconds: list[Any] = list(paced.order_by("-graded_at").values_list("seconds", flat=True)[:PACE_OF])
    return RoundPreview(
        pairs,
        items + shared,
        len(plan.judges),
        plan.depth,
        str(plan.question.measure),
        median(seconds) if len(seconds) >= MIN_SAMPLES else USUAL_SECONDS,
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """The validated inputs of a new round."""

    mapping: Mapping
    version: DatasetVersion
    judges: list[User]
    depth: int
    scale: list[dict[str, object]]
    rankings: list[Rankings]
    query_ids: list[int]
    question: Question


def _plan(runs: Sequence[Run], options: RoundOptions, judges: Sequence[User], owner: User | None) -> _Plan:
    mapping = _find_mapping(runs, owner)
    version = require_current(mapping)
    judges = list(judges) or ([owner] if owner else [])
    measure = _measure(options, runs[0])
    depth = (measure.cutoff or USUAL_DEPTH) if options.depth is None else options.depth
    _check(options, judges, depth)
    if options.order == Round.Order.DECISIVE and len(runs) == 1:
        raise RoundError(
            "The decisive order needs at least two runs to compare: add a run, or choose another order.",
            field="order",
        )
    scale = read_scale(options.scale) if options.scale else build_default_scale(version)
    basis = load_basis(mapping, version, runs, depth)
    query_ids, rankings = sorted(basis.grades), basis.rankings
    _require_ranked(runs, rankings, query_ids)
    pool, truths = build_pool(rankings, query_ids, depth), [basis.grades[query] for query in query_ids]
    question = Question(pool, measure, list_grades(scale), truths, options.seed, basis.is_fair)
    question.check(options.order)
    return _Plan(mapping, version, judges, depth, scale, rankings, query_ids, question)


def _find_mapping(runs: Sequence[Run], owner: User | None) -> Mapping:
    """Return the mapping of all runs. Raises RoundError for runs that a round cannot compare."""
    if not runs:
        raise RoundError("A round needs at least one run: choose the runs to judge.", field="runs")
    seen = set(usable(Run.objects.filter(pk__in=[run.pk for run in runs]), owner, through="benchmark"))
    for run in runs:
        if run not in seen:
            viewer = f"{owner}" if owner else "the whole staff"
            raise RoundError(f'The run "{run}" of "{run.benchmark}" is not visible to {viewer}.', field="runs")
        if run.status != Run.Status.COMPLETED:
            raise RoundError(
                f'The run "{run}" has no rankings: it is {run.status}. Choose completed runs.', field="runs"
            )
    mappings = {run.benchmark.mapping for run in runs}
    if len(mappings) > 1:
        names = ", ".join(sorted(f'"{mapping}"' for mapping in mappings))
        raise RoundError(
            f"The runs of a round must have the same mapping, but these have several: {names}.", field="runs"
        )
    if len({run.benchmark.identical_texts for run in runs}) > 1:
        raise RoundError("The benchmarks of these runs differ in identical_texts: leave some out.", field="runs")
    if len(set(runs)) < len(runs):
        raise RoundError("A run is named twice: name each once.", field="runs")
    return mappings.pop()


def _require_ranked(runs: Sequence[Run], rankings: Sequence[Rankings], query_ids: Sequence[int]) -> None:
    """Raise RoundError for a run that lost too many queries: it might win a comparison only because of them."""
    if len(runs) < 2:
        return
    for run, answered in zip(runs, rankings, strict=True):
        lost = [query for query in query_ids if query not in answered]
        counted = len(query_ids) - len(lost)
        if not has_lost_too_many(counted=counted, lost=len(lost)):
            continue
        failed = run.query_results.filter(query__in=lost).values("query").distinct().count()
        reason = unranked_reason(counted=counted, failed=failed, unsearched=len(lost) - failed)
        raise RoundError(f'Leave out the run "{run}" of "{run.benchmark}", or repair it. {reason}', field="runs")


def _measure(options: RoundOptions, run: Run) -> Measure:
    try:
        return Measure.read(options.measure or f"nDCG@{run.benchmark.primary_k}")
    except MeasureError as error:
        raise RoundError(str(error), field="measure") from error


def _check(options: RoundOptions, judges: Sequence[User], depth: int) -> None:
    if not options.name.strip():
        raise RoundError("Give the round a name.", field="name")
    if options.order not in Round.Order.values:
        raise RoundError(
            f"The order must be one of {', '.join(Round.Order.values)}, not {options.order!r}.", field="order"
        )
    if not 1 <= depth <= MOST_DEPTH:
        raise RoundError(f"The depth is {depth}: choose one from 1 to {MOST_DEPTH:,}.", field="depth")
    if options.budget is not None and options.budget < 1:
        raise RoundError("The budget must be at least 1 item. Leave it out for the whole pool.", field="budget")
    if not 0 <= options.seed <= MOST_SEED:
        raise RoundError(f"The seed must be a whole number from 0 to {MOST_SEED:,}.", field="seed")
    for name, label in SHARES.items():
        share = getattr(options, name)
        if not 0 <= share <= 1:
            raise RoundError(f"{label} ({name}) must be from 0 to 1, not {share}.", field=name)
    if not 2 <= options.overlap_judges <= 10:
        raise RoundError(
            f"A shared item needs 2 to 10 judges, not {options.overlap_judges}: change overlap_judges.",
            field="overlap_judges",
        )
    require_judges(judges, overlap_judges=options.overlap_judges if options.overlap else 1)


def _check_items(items: int, depth: int, version: DatasetVersion) -> None:
    if not items:
        raise RoundError(
            f"All pairs in the first {depth:,} documents of these runs are judged in {version}. "
            "Choose a greater depth or other runs.",
            field="depth",
        )
    if items > MOST_ITEMS:
        raise RoundError(
            f"The pool has {items:,} pairs; a round has at most {MOST_ITEMS:,}: choose a smaller depth, or fewer runs.",
            field="depth",
        )


def _write(
    opened: Round,
    placed: OrderedItems,
    pairs: Sequence[tuple[int, int]],
    passages: MappingType[tuple[int, int], int],
) -> None:
    """Store the items, and a slot for each judge that an item wants."""
    draw = np.random.default_rng([opened.seed, 1])  # independent of the numbers of the order
    shared = set(draw.permutation(len(pairs))[: opened.shared_items].tolist())
    items = RoundItem.objects.bulk_create(
        (
            RoundItem(
                round=opened,
                query_id=pair[0],
                document_id=pair[1],
                chunk_id=passages.get(pair),
                place=index + 1,
                planned_probability=placed.probability,
                in_planned_sample=number in placed.sample,
                wanted=opened.overlap_judges if index in shared else 1,
            )
            for index, (number, pair) in enumerate(zip(placed.numbers, pairs, strict=True))
        ),
        batch_size=BATCH,
    )
    Slot.objects.bulk_create(
        (
            Slot(round=opened, item=item, place=item.place, number=number)
            for item in items
            for number in range(1, item.wanted + 1)
        ),
        batch_size=BATCH,
    )
    if len(items) > 1000:  # else the planner underestimates so many new rows until autovacuum runs
        connection.cursor().execute(f"ANALYZE {RoundItem._meta.db_table}, {Slot._meta.db_table}")
