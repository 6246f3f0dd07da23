"""The next step of a round for one of its people: a sentence, and the act that it asks for."""

from dataclasses import dataclass
from enum import Enum

from django.contrib.auth.models import User

from apps.judging.handing import is_used_up, list_waiting_slots
from apps.judging.judges import may_lead
from apps.judging.models import Round
from apps.judging.settling.progress import Progress
from apps.records.models import Benchmark, Evaluation
from benchbench.access import AnyUser, visible
from benchbench.decimals import counted


class Act(Enum):
    JUDGE = "Judge"
    ADJUDICATE = "Adjudicate"
    ASSIGN = "Add judges …"
    CLOSE = "Close …"
    RESOLVE = "Resolve"
    RESCORE = "Re-score"
    RESULTS = "See the results"
    OPEN = "Open a round …"


@dataclass(frozen=True, slots=True)
class NextStep:
    """A sentence on what happens next, and the act that it asks for, with the `benchmark` that it concerns."""

    sentence: str
    act: Act | None = None
    benchmark: Benchmark | None = None


def find_next_step(round: Round, user: User, progress: Progress, split: int) -> NextStep:
    """Return the next step of a round for `user`; `split` counts the items on which its judges are split."""
    if not round.is_open:
        return _find_after_closing(round, user)
    left = max(0, progress.total_gradings - progress.completed_gradings) if round.offers_items else 0
    own_items, judges = 0, user.get_username() in {judge.judge for judge in progress.judges}
    if left and judges:
        own_items = min(left, list_waiting_slots(user).filter(round=round).values("item").distinct().count())
    if own_items:
        return NextStep(f"{_say_waiting(own_items, 'item')} for your grade.", Act.JUDGE)
    if not may_lead(round, user):
        if left:
            waiting = _say_waiting(left, "grading")
            sentence = (
                f"You graded all that you can; {waiting} for other judges." if judges else f"{waiting} for judges."
            )
            return NextStep(sentence)
        return NextStep("No more grades are needed: the round waits for its owner to close it.")
    if split:
        return NextStep(f"The judges are split on {counted(split, 'item')}: decide each of them.", Act.ADJUDICATE)
    if left:
        return NextStep(f"{_say_waiting(left, 'grading')} for other judges: add judges or wait.", Act.ASSIGN)
    reason = "The result is settled" if round.settled_at else "All items are graded"
    if not round.settled_at and is_used_up(round):
        reason = f"The budget of {counted(round.budget or 0, 'item')} is used up, and a new round may judge the rest"
    return NextStep(f"{reason}: close the round, and its grades become judgments of a new version.", Act.CLOSE)


def _find_after_closing(round: Round, user: AnyUser) -> NextStep:
    version = round.closed_version
    if version is None:
        return NextStep("The round ended without grades, so the dataset is unchanged.", Act.OPEN)
    benchmark = visible(Benchmark.objects.filter(runs__rounds=round), user).order_by("created_at").first()
    measured = Evaluation.objects.filter(run__benchmark=benchmark, dataset_version=version)
    if benchmark is not None and measured.exists():
        return NextStep(f"Its grades are in {version}, and the runs are measured on it.", Act.RESULTS, benchmark)
    if round.mapping.dataset_version_id != version.pk:
        return NextStep(f"Its grades are in {version}: resolve the mapping, then re-score the runs.", Act.RESOLVE)
    if benchmark is None:
        return NextStep(f"Its grades are in {version}.")
    return NextStep(f"Its grades are in {version}: re-score the runs to see what moved.", Act.RESCORE, benchmark)


def _say_waiting(count: int, noun: str) -> str:
    return f"{counted(count, noun)} {'waits' if count == 1 else 'wait'}"
