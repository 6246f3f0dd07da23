"""Summary of a round: progress, what is settled and what waits, in figures and a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass

from apps.benchmarks.models import Run
from apps.judging.models import Round
from apps.judging.settling.consensus import agreed_of
from apps.judging.settling.deciding import state_of
from apps.judging.settling.progress import Progress, progress_of
from benchbench.decimals import counted
from benchbench.ir.judging.state import State


@dataclass(frozen=True, slots=True)
class Summary:
    """A round as it stands. `state` is None for a round that compares nothing; its rows are `runs`."""

    round: Round
    progress: Progress
    split: list[int]
    state: State | None
    runs: Sequence[Run]

    @property
    def sentence(self) -> str:
        """Where the round stands, for the reader."""
        parts = [f"{self.progress.done:,} of {counted(self.progress.wanted, 'grading')} done."]
        if self.split:
            parts.append(f"{counted(len(self.split), 'item')} to adjudicate.")
        if self.state is not None:
            parts.append(_verdict(self.state, self.runs))
        return " ".join(parts)


def summary_of(round: Round) -> Summary:
    """Return a round as it stands now; its state is brought up to date (`deciding.state_of`)."""
    stated = state_of(round)
    split = [one.item_id for one in agreed_of(round).values() if one.split]
    state, runs = stated or (None, [])
    return Summary(round, progress_of(round), split, state, runs)


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
