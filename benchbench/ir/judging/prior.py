"""What complete collections teach of β and u before a round has any grade; `perf/prior.py` makes it."""

from benchbench.ir.judging.relevance import Prior

PRIOR = Prior(
    means=(-2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
    spreads=(2.0, 2.0, 3.0, 3.0, 3.0, 1e-6, 0.5),
    run=(0.0, 1.0),
    richness=1.0,
)
