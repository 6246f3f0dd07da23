"""Closing a round: its grades become the dataset's next version, and runs are measured on it again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils import timezone

from apps.collections.states import find_rewritten
from apps.datasets.editing.drafts import count_changes, find_draft, freeze
from apps.datasets.editing.judgments import JudgmentEdit, edit_judgments
from apps.datasets.models import Dataset, DatasetVersion, Judgment
from apps.datasets.records import JUDGE_LENGTH, JudgmentRecord
from apps.datasets.versions import find_version
from apps.judging.judges import RoundStateError, require_lead, require_open
from apps.judging.models import Round, RoundItem, RoundState, Slot
from apps.judging.settling.consensus import Consensus, load_consensus
from apps.judging.settling.deciding import load_runs, renew
from apps.judging.settling.report import describe_evidence
from apps.mappings.repairing import find_judgments
from apps.mappings.resolving import resolve
from apps.records.measuring.again import rescore
from apps.records.models import Benchmark, RoundVerdict
from benchbench.database.failures import read_again, refresh
from benchbench.decimals import counted
from benchbench.errors import BenchbenchError
from benchbench.reading.strict_json import attributes


@dataclass(frozen=True, slots=True)
class Closed:
    """Result of closing a round.

    `version`: the new version of the dataset, None if no grade was added. `judgments`: how many grades were added to
    it. `split`, `outdated` and `judged` count the items left out: those whose judges are split; those whose query or
    document was changed or removed; those with newer judgments, which remain. `messages`: sentences about resolving and
    re-scoring.
    """

    version: DatasetVersion | None
    judgments: Annotated[int, "Judgments that the round added to the version."] = 0
    split: Annotated[int, "Items left out because their judges are split."] = 0
    outdated: Annotated[int, "Items left out because their query or document changed."] = 0
    judged: Annotated[int, "Items left out because they were judged elsewhere."] = 0
    messages: list[str] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """A summary for the reader."""
        if self.version is None:
            opening = "The round is closed. It had no grades to keep, so the dataset is unchanged."
        else:
            opening = f"The round is closed: {counted(self.judgments, 'new judgment')} in {self.version}."
        left_out = [
            (self.split, "whose judges are split"),
            (self.outdated, "of queries or documents that changed since"),
            (self.judged, "that were judged elsewhere since"),
        ]
        clauses = [f"{counted(count, 'item')} {reason}" for count, reason in left_out if count]
        return " ".join([opening, *([f"Left out: {', '.join(clauses)}."] if clauses else []), *self.messages])


def close_round(
    round: Round, by: User, *, leave_out_split: bool = False, with_draft: bool = False, label: str = "", note: str = ""
) -> Closed:
    """Close a round: its grades become the next version of the dataset, on which the runs' benchmarks are re-scored.

    `by` leads the round. Changes nothing and raises RoundStateError if items wait for adjudication, unless
    `leave_out_split`; and if the dataset has a draft of other edits, unless `with_draft`. A later failure to resolve or
    re-score is reported and can be repaired; the version is frozen by then.
    """
    require_lead(round, by)
    with transaction.atomic():
        renew(round)  # whose row is locked before the round's own, as by every renewal
        dataset = read_again(Dataset.objects.select_for_update(), round.mapping.dataset_id)
        round = read_again(Round.objects.select_for_update(of=("self",)), round.pk)
        require_open(round)
        state = renew(round)
        closed = _freeze(round, dataset, by, leave_out_split, with_draft, label, note)
        if closed.version is not None and state.state is not None:
            _carry(round, state, closed.version)
        round.state, round.closed_at, round.closed_by = Round.State.CLOSED, timezone.now(), by
        round.closed_version = closed.version
        round.save(update_fields=["state", "closed_at", "closed_by", "closed_version", "updated_at"])
        Slot.objects.filter(round=round, done=False).update(judge=None, until=None)
    if closed.version is not None:
        closed.messages.extend(_rescore(round, by))
    return closed


def _freeze(
    round: Round, dataset: Dataset, by: User, leave_out_split: bool, with_draft: bool, label: str, note: str
) -> Closed:
    consensus_by_item = load_consensus(round)
    split = [consensus for consensus in consensus_by_item.values() if consensus.split]
    if split and not leave_out_split:
        raise RoundStateError(
            f"{counted(len(split), 'item')} of the round wait for adjudication, because their judges are split: "
            f"decide them, or close the round without them."
        )
    settled_items = {item_id: consensus for item_id, consensus in consensus_by_item.items() if not consensus.split}
    draft = find_draft(dataset)
    if settled_items and draft and (changes := count_changes(draft)).total and not with_draft:
        raise RoundStateError(
            f'The dataset "{dataset}" has a draft with {changes.sentence}, which closing the round would also '
            "freeze. Freeze or discard it first, or close the round with it."
        )
    items, outdated, judged = _list_storable_items(round, settled_items)
    if not items:
        return Closed(None, 0, len(split), outdated, judged)
    for judged_by, edits in _build_edits(items, settled_items):
        edit_judgments(dataset, edits, judged_by=judged_by)
    version = freeze(dataset, label=label, note=note or f'Judging round "{round}".')
    return Closed(version, len(items), len(split), outdated, judged)


def _carry(round: Round, row: RoundState, version: DatasetVersion) -> None:
    """Let the version carry the round's verdict."""
    RoundVerdict.objects.create(
        dataset_version=version,
        run_ids=[run.pk for run in load_runs(round)],
        record=row.state,
        evidence=describe_evidence(row.evidence),
        **attributes(round, "name", "measure"),
        **attributes(row, "grades"),
    )


def _list_storable_items(round: Round, settled: dict[int, Consensus]) -> tuple[list[RoundItem], int, int]:
    """Return the items whose grades the dataset takes, and the counts of outdated and elsewhere judged items."""
    version = find_version(round.mapping.dataset, edited=True)
    rows = (
        RoundItem.objects.filter(round=round, pk__in=settled)
        .select_related("query", "document")
        .defer("document__text")
    )
    current = set(version.queries.values_list("pk", flat=True))
    fitting, outdated, judged = [], 0, 0
    elsewhere, rewritten = _load_judged_pairs(round, version), _find_rewritten(round, rows)
    for item in rows.order_by("place"):
        is_missing = item.query_id not in current or item.document.removed_at is not None
        if is_missing or item.document_id in rewritten:
            outdated += 1
        elif (item.query_id, item.document_id) in elsewhere:
            judged += 1
        else:
            fitting.append(item)
    return fitting, outdated, judged


def _find_rewritten(round: Round, items: QuerySet[RoundItem]) -> set[int]:
    """Return the ids of documents of items that got other content after the round was opened.

    It is compared with the newest that the runs searched; where no state is recorded, as of a collection of ids,
    nothing is known to compare with.
    """
    state = round.round_runs.aggregate(newest=Max("run__benchmark__state"))["newest"]
    changed = items.filter(document__updated_at__gt=round.created_at).values_list("document", flat=True)
    return set() if state is None else find_rewritten(set(changed), state)


def _load_judged_pairs(round: Round, version: DatasetVersion) -> set[tuple[int, int]]:
    """Return (query id, document id) of judgments that are newer than the version on which the round began."""
    newer = version.judgments.filter(since__gt=round.dataset_version.number).select_related("query")
    queries = {judgment.query_id: judgment.query for judgment in newer}
    return {
        (query_id, document_id)
        for query_id, query in queries.items()
        for document_id in find_judgments(round.mapping, version, query)
    }


def _build_edits(
    items: Sequence[RoundItem], settled: dict[int, Consensus]
) -> Iterable[tuple[User | None, list[JudgmentEdit]]]:
    """Yield the judgments to store, grouped by the only user who graded them; None if several did."""
    by_user: dict[User | None, list[JudgmentEdit]] = {}
    for item in items:
        users = {row.judge for row in settled[item.pk].grades}
        reference = {"document_id": item.document.external_id}
        edit = JudgmentEdit(item.query.key, reference, _record(reference, settled[item.pk]))
        by_user.setdefault(users.pop() if len(users) == 1 else None, []).append(edit)
    return by_user.items()


def _record(reference: dict[str, Any], consensus: Consensus) -> JudgmentRecord:
    """Return the judgment from the grades of an item, with the names of all its judges and their notes."""
    assert consensus.grade is not None
    names = [f"{row.judge_name} (adjudicated)" if row.adjudicates else row.judge_name for row in consensus.grades]
    notes = [(row.judge_name, row.note.strip()) for row in consensus.grades if row.note.strip()]
    note = notes[0][1] if len(consensus.grades) == 1 and notes else "\n".join(f"{name}: {text}" for name, text in notes)
    judge = ", ".join(names)
    if len(judge) > JUDGE_LENGTH:
        judge = f"{len(names)} judges"
    return JudgmentRecord(reference, consensus.grade, None, Judgment.Source.HUMAN, judge=judge, note=note)


def _rescore(round: Round, by: User) -> Iterable[str]:
    """Resolve the mapping for the new version and re-score the benchmarks of the runs; yield the results as text."""
    mapping = round.mapping
    refresh(mapping)
    try:
        if resolve(mapping, by=by).operation is not None:
            yield f'The mapping "{mapping}" is being resolved; re-score the benchmarks after that.'
            return
    except BenchbenchError as error:
        yield f'The mapping "{mapping}" could not be resolved: {error.message}'
        return
    for benchmark in Benchmark.objects.filter(runs__rounds=round).distinct().order_by("created_at"):
        try:
            yield f'"{benchmark}": {rescore(benchmark, version=round.closed_version, by=by).sentence}'
        except BenchbenchError as error:
            yield f'"{benchmark}" could not be re-scored: {error.message}'
