"""Summary of a round: progress, what is settled and what waits, in figures and a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass

from apps.benchmarks.models import Run
from apps.judging.models import Round
from apps.judging.settling.progress import Progress, progress_of
from apps.judging.settling.renewing import Stated, stated
from benchbench.decimals import counted
from benchbench.ir.judging.state import State


@dataclass(frozen=True, slots=True)
class Summary:
    """A round as it stands: its progress, and the state that is known (`renewing.Stated`)."""

    round: Round
    progress: Progress
    stated: Stated

    @property
    def state(self) -> State | None:
        return self.stated.state

    @property
    def runs(self) -> Sequence[Run]:
        return self.stated.runs

    @property
    def split(self) -> list[int]:
        return self.stated.said.split

    @property
    def sentence(self) -> str:
        """Where the round stands, for the reader."""
        parts = [f"{self.progress.done:,} of {counted(self.progress.wanted, 'grading')} done."]
        if self.split:
            parts.append(f"{counted(len(self.split), 'item')} to adjudicate.")
        if self.state is not None:
            parts.append(_verdict(self.state, self.runs))
            parts.extend(filter(None, [self.age]))
        return " ".join(parts)

    @property
    def evidence(self) -> str:
        """What the chance of relevance rests on, for the reader."""
        index, model = self.stated.evidence.get("index"), self.stated.evidence.get("model")
        parts = ["how the runs rank a document"]
        if index:
            parts.append(f'how near its text is to those graded (vectors of the index "{index}")')
        if model:
            parts.append(f"the grade of {model}, as evidence only: no grade of a model counts")
        lacks = "" if index else " No run has an index with vectors for it, so texts are not compared."
        return f"{', '.join(parts[:-1])} and {parts[-1]}.{lacks}" if len(parts) > 1 else f"{parts[0]}.{lacks}"

    @property
    def age(self) -> str:
        """Of how many grades the state is, for the reader; empty where it counts all."""
        if self.stated.is_current:
            return ""
        grades = self.stated.said.count
        if self.stated.counted == grades:
            return "A grade has changed since; that is being renewed."
        return f"That counts {self.stated.counted:,} of {counted(grades, 'grade')}; it is being renewed."


def summary_of(round: Round, *, here: bool = False) -> Summary:
    """Return a round as it stands; with `here` its state is reckoned in this process where it is not that of now."""
    state = stated(round, here=here)
    return Summary(round, progress_of(round), state)


def _verdict(state: State, runs: Sequence[Run]) -> str:
    if state.reason is not None:
        return state.reason
    best = ", ".join(f'"{runs[row]}"' for row in state.verdict)
    if state.settled:
        sure = "under every filling of the holes" if state.certain else "at 95 %"
        told = f"best is {best}" if len(state.verdict) == 1 else f"the best cannot be told apart: {best}"
        return f"Settled {sure}: {told}."
    if state.more.middle is None:
        return "Not settled; how many grades more would settle it is not known yet."
    return f"Not settled: about {counted(state.more.middle, 'grade')} more would settle it."
