"""Judging on the queues: the states of rounds, and grades of language models.

A batch of a language model asks for some answers, one after another, and stores their grades in the transaction that
ends it. Valid answers are stored as they arrive (`retrieval.llms`), so that an interrupted batch pays for none twice.
"""

from dataclasses import dataclass
from operator import attrgetter
from typing import ClassVar

from django.db import close_old_connections
from django.utils import timezone

from apps.judging.handing import load_items
from apps.judging.judges import RoundStateError, lock_open_round, require_open
from apps.judging.llm.judges import count_grades
from apps.judging.llm.launching import list_changes
from apps.judging.llm.prompting import MAX_TOKENS, build_prompt, is_answer, read_answer
from apps.judging.models import Grade, LLMJudge, Round, RoundItem
from apps.judging.settling.deciding import renew
from apps.judging.settling.renewing import RENEW_STATE
from apps.operations.handlers import Handler
from apps.operations.leasing import Lease
from apps.operations.models import Batch, Operation, Status
from apps.operations.progress import build_common_fields, compute_progress
from apps.operations.queueing import mark_started
from apps.retrieval.llms.answers import trim_answers
from apps.retrieval.llms.asking import ask_llm
from apps.retrieval.llms.servers import complete_llm
from benchbench.reading.objects import Listed, StrictRecord, read_as


@dataclass(frozen=True, slots=True)
class JudgingWork(StrictRecord):
    """The parameters of an operation: the id of the judge, and the number of items that its cap leaves out."""

    IGNORES_OTHERS: ClassVar[bool] = True  # keys of a later version, while a site is upgraded

    judge: str
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class JudgingBatch(StrictRecord):
    """The work of a batch: to judge items."""

    IGNORES_OTHERS: ClassVar[bool] = True  # keys of a later version, while a site is upgraded

    items: Listed[int]


def _read_work(operation: Operation) -> JudgingWork:
    return read_as(JudgingWork, operation.parameters)


class LLMJudgingHandler(Handler):
    """The work of an `llm_judging` operation; its subject is a round."""

    kind = Operation.Kind.LLM_JUDGING
    subject = Round
    busy = "rounds being judged by a model"
    units = "items"
    limit = "BENCHMARK_MAX_LLM_JUDGING_PER_USER"

    def perform(self, batch: Batch, lease: Lease) -> None:
        judge = LLMJudge.objects.select_related("round").get(pk=_read_work(batch.operation).judge)
        require_open(judge.round)
        if changes := list_changes(judge):
            raise RoundStateError(
                f"{judge} cannot continue because {' and '.join(changes)}. Start it again: it will judge every item "
                f"again."
            )
        rows = []
        for index, item in enumerate(load_items(read_as(JudgingBatch, batch.payload).items)):
            lease.check()
            rows.append(_grade(judge, item))
            lease.report(index + 1)
        with lease.commit():
            lock_open_round(judge.round)
            Grade.objects.bulk_create(sorted(rows, key=attrgetter("item_id")), ignore_conflicts=True)

    def finalise(self, operation: Operation) -> None:
        trim_answers()

    def stop(self, operation: Operation) -> None:
        """Do nothing: the stored grades remain, and the next start continues."""

    def find_stage(self, operation: Operation) -> str:
        return "judging" if operation.status == Status.RUNNING else super().find_stage(operation)

    def build_event(self, operation: Operation) -> tuple[str, dict[str, object]]:
        return "llm_judging_progress", describe_progress(operation)


def renew_state(round_id: str) -> None:
    """Renew the state of a round, unless the round was deleted. The job `RENEW_STATE`."""
    close_old_connections()  # the database may have restarted since the last job, and RQ does not check
    try:
        mark_started(RENEW_STATE, round_id)
        if round := Round.objects.select_related("mapping", "dataset_version").filter(pk=round_id).first():
            renew(round)
    finally:
        close_old_connections()


def describe_progress(operation: Operation) -> dict[str, object]:
    """Return the data of an `llm_judging_progress` event."""
    work = _read_work(operation)
    judge = LLMJudge.objects.filter(pk=work.judge).first()
    operation_progress = compute_progress(operation)
    counts = count_grades(judge) if judge else {"graded": 0, "cannot_judge": 0}
    return {
        **build_common_fields(operation),
        "round_id": str(operation.subject_id),
        "judge": judge.name if judge else None,
        "stage": operation_progress.stage,
        "total_answers": operation_progress.total,
        "answers": operation_progress.done_units,
        **counts,
        "left_out": work.left_out,
        "eta_seconds": operation_progress.eta_seconds,
    }


def _grade(judge: LLMJudge, item: RoundItem) -> Grade:
    """Return a model's grade of an item, with the seconds that it took. Raises LLMError."""
    server, _, model = judge.llm.partition(":")
    parameters = complete_llm({"provider": server, "max_tokens": MAX_TOKENS})
    scale = judge.round.scale
    reply = ask_llm(model, parameters, build_prompt(judge.round, item), lambda answer: is_answer(answer, scale))
    grade = read_answer(reply.text, scale)
    return Grade(
        item=item,
        source=Grade.Source.LLM,
        judge_name=judge.name,
        kind=Grade.Kind.CANNOT_JUDGE if grade is None else Grade.Kind.GRADE,
        grade=grade,
        note="" if grade is not None else reply.text.strip()[:200],
        seconds=reply.ms / 1000,
        graded_at=timezone.now(),
    )
