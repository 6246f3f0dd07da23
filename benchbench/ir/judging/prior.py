"""Prior of the model of relevance: what complete collections teach of β and u before a round has any grade.

`perf/prior.py` makes these figures from ADI, Cranfield and SciFact, and says how.
"""

from benchbench.ir.judging.relevance import Prior

PRIOR = Prior(
    means=(-3.16, 2.12, 6.08, 4.25, -0.96, -0.99, 1.0),
    spreads=(2.0, 1.0, 4.61, 2.64, 2.0, 1.66, 0.5),
    run=(0.12, 0.6),
    richness=0.87,
)
