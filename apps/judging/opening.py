"""Opening a round: its options checked, its pool read, its items placed."""

import math
from collections.abc import Mapping as MappingType
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.contrib.auth.models import User
from django.db import transaction

from apps.benchmarks.defining.creating import require_current
from apps.benchmarks.models import Run
from apps.judging.errors import RoundError
from apps.judging.models import Round, RoundItem, RoundRun, Slot
from apps.judging.ordering import Placed, place
from apps.judging.pooling import known_grades, pool_of, read_rankings
from apps.judging.scales import default_scale, read_scale
from apps.mappings.models import Mapping
from benchbench.access import usable
from benchbench.decimals import counted
from benchbench.ir.measures import Measure, MeasureError

USUAL_DEPTH = 10  # of a measure without a cutoff
MOST_DEPTH = 1000
MOST_ITEMS = 100_000
BATCH = 5000


@dataclass(frozen=True, slots=True)
class RoundOptions:
    """What is stated of a round. Without a measure it is nDCG at the primary k of the first run's benchmark; without
    a depth, the cutoff of the measure; without a scale, that of the dataset's grades."""

    name: str
    order: str = Round.Order.DECISIVE
    measure: str = ""
    depth: int | None = None
    budget: int | None = None
    uniform_share: float = 0.2
    seed: int = 42
    scale: Sequence[MappingType[str, Any]] = ()
    guidelines: str = ""
    overlap: float = 0.0
    overlap_judges: int = 2
    blind: bool = True


def open_round(
    runs: Sequence[Run], options: RoundOptions, *, judges: Sequence[User], owner: User | None = None
) -> Round:
    """Open a round over completed runs of one mapping, judged by `judges`; without any, by the owner.

    Its items are what the runs return in their first documents and the dataset has not judged, each pair once.
    Nothing is opened when anything is wrong: RoundError, whose field is the option at fault; ConflictError where the
    mapping is not resolved for what dataset and collection are now.
    """
    mapping = _mapping_of(runs, owner)
    version = require_current(mapping)
    judges = list(judges) or ([owner] if owner else [])
    measure = _measure(options, runs[0])
    depth = options.depth or measure.cutoff or USUAL_DEPTH
    _check(options, judges, depth)
    scale = read_scale(options.scale) if options.scale else default_scale(version)
    pool = pool_of(read_rankings(runs, depth), known_grades(mapping, version), depth)
    placed = place(
        pool,
        order=options.order,
        budget=options.budget,
        uniform_share=options.uniform_share,
        seed=options.seed,
    )
    _check_items(placed, depth, version)
    with transaction.atomic():
        opened = Round.objects.create(
            name=options.name.strip(),
            owner=owner,
            team=mapping.team,
            mapping=mapping,
            dataset_version=version,
            order=options.order,
            depth=depth,
            budget=options.budget,
            measure=str(measure),
            uniform_share=options.uniform_share,
            seed=options.seed,
            scale=scale,
            guidelines=options.guidelines,
            overlap=options.overlap,
            overlap_judges=options.overlap_judges,
            blind=options.blind,
            item_count=len(placed),
            pool_size=len(pool),
        )
        RoundRun.objects.bulk_create(RoundRun(round=opened, run=run) for run in runs)
        opened.judges.set(judges)
        _write(opened, placed)
    return opened


def _mapping_of(runs: Sequence[Run], owner: User | None) -> Mapping:
    """Return the mapping of all runs; raise for runs that no round can compare."""
    if not runs:
        raise RoundError("A round needs at least one run, whose documents are judged.", field="runs")
    seen = set(usable(Run.objects.filter(pk__in=[run.pk for run in runs]), owner, through="benchmark"))
    for run in runs:
        if run not in seen:
            whose = f"{owner}'s" if owner else "the whole staff's"
            raise RoundError(f'The run "{run}" of "{run.benchmark}" is not {whose} to see.', field="runs")
        if run.status != Run.Status.COMPLETED:
            raise RoundError(
                f'The run "{run}" has no rankings: it is {run.status}. Choose completed runs.', field="runs"
            )
    mappings = {run.benchmark.mapping for run in runs}
    if len(mappings) > 1:
        names = ", ".join(sorted(f'"{mapping}"' for mapping in mappings))
        raise RoundError(f"The runs are of several mappings, {names}: a round is of one.", field="runs")
    if len(set(runs)) < len(runs):
        raise RoundError("A run is named twice: name each once.", field="runs")
    return mappings.pop()


def _measure(options: RoundOptions, run: Run) -> Measure:
    try:
        return Measure.parse(options.measure or f"nDCG@{run.benchmark.primary_k}")
    except MeasureError as error:
        raise RoundError(str(error), field="measure") from error


def _check(options: RoundOptions, judges: Sequence[User], depth: int) -> None:
    if not options.name.strip():
        raise RoundError("Give the round a name.", field="name")
    if options.order not in Round.Order.values:
        raise RoundError(f"The order is one of {', '.join(Round.Order.values)}, not {options.order!r}.", field="order")
    if not 1 <= depth <= MOST_DEPTH:
        raise RoundError(f"The depth is {depth}: choose one from 1 to {MOST_DEPTH:,}.", field="depth")
    if options.budget is not None and options.budget < 1:
        raise RoundError("A budget is at least 1 item; leave it out for the whole pool.", field="budget")
    for name in ("uniform_share", "overlap"):
        share = getattr(options, name)
        if not 0 <= share <= 1:
            raise RoundError(f"{name} is a share from 0 to 1, not {share}.", field=name)
    _check_judges(options, judges)


def _check_judges(options: RoundOptions, judges: Sequence[User]) -> None:
    if not judges:
        raise RoundError("A round needs judges: name at least one.", field="judges")
    for judge in judges:
        if not (judge.is_active and judge.is_staff):
            raise RoundError(f"{judge} may not sign in here: a judge is an active member of the staff.", field="judges")
    if not 2 <= options.overlap_judges <= 10:
        raise RoundError("An item is shared by 2 to 10 judges: change overlap_judges.", field="overlap_judges")
    named = len(set(judges))
    if options.overlap and named < options.overlap_judges:
        raise RoundError(
            f"The overlap asks for {options.overlap_judges} judges of an item, and {counted(named, 'judge')} is named: "
            "name more, or set the overlap to 0.",
            field="overlap",
        )


def _check_items(placed: Sequence[Placed], depth: int, version: Any) -> None:
    if not placed:
        raise RoundError(
            f"Whatever these runs return in their first {depth:,} is judged in {version}: there is nothing to grade. "
            "Choose a greater depth or other runs.",
            field="depth",
        )
    if len(placed) > MOST_ITEMS:
        raise RoundError(
            f"The pool has {len(placed):,} pairs, and a round at most {MOST_ITEMS:,} items: give a budget, or a "
            "smaller depth.",
            field="depth",
        )


def _write(opened: Round, placed: Sequence[Placed]) -> None:
    """Write the items, and a slot for each judge that an item wants."""
    draw = np.random.default_rng([opened.seed & 0xFFFF_FFFF, 1])  # other numbers than those of the order
    shared = set(draw.permutation(len(placed))[: math.ceil(opened.overlap * len(placed))].tolist())
    items = RoundItem.objects.bulk_create(
        (
            RoundItem(
                round=opened,
                query_id=one.pair.query_id,
                document_id=one.pair.document_id,
                chunk_id=one.pair.chunk_id,
                place=place,
                probability=one.probability,
                uniform=one.uniform,
                wanted=opened.overlap_judges if place - 1 in shared else 1,
            )
            for place, one in enumerate(placed, start=1)
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
