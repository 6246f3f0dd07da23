"""Errors of judging."""

from benchbench.errors import BenchbenchError, ConflictError


class RoundError(BenchbenchError):
    """What is stated of a round, or of a grade, cannot be."""

    code = "invalid_round"


class RoundStateError(ConflictError):
    """The round is in a state that forbids the act."""

    code = "round_state"


class NotAJudgeError(ConflictError):
    """The user sees the round, and is not among those who do this in it, whom its owner names."""

    code = "not_a_judge"
