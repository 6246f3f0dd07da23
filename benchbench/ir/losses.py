"""Queries without a value: when so many are lost that the mean over the others stands for no run."""

MOST_LOST_PERCENT = 5


def too_many_lost(*, counted: int, lost: int) -> bool:
    """Tell whether more than MOST_LOST_PERCENT of `counted` + `lost` queries are lost."""
    return 100 * lost > MOST_LOST_PERCENT * (counted + lost)


def why_unranked(*, counted: int, failed: int, unsearched: int) -> str:
    """Return why a run whose mean is over `counted` queries is not ranked, in a sentence; "" where it may be.

    `failed` of the others ended in an error, `unsearched` were never asked. What is lost is not lost at random: the
    hard queries fail, the new ones differ. So a mean over the rest ranks, wins and passes a gate only where at most
    MOST_LOST_PERCENT of all are lost, whichever way.
    """
    lost = failed + unsearched
    if not too_many_lost(counted=counted, lost=lost):
        return ""
    parts = [f"{failed:,} failed: retry it"] if failed else []
    parts += [f"{unsearched:,} it was never asked: clone the benchmark, which asks them"] if unsearched else []
    verb = "has" if lost == 1 else "have"
    return (
        f"Not ranked: {lost:,} of {counted + lost:,} queries {verb} no value, more than {MOST_LOST_PERCENT} %; "
        f"{'; '.join(parts)}."
    )
