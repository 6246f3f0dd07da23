"""Outcomes of gates that allow a loss of .01.

Over 30 queries with a true loss of .05 or none, by either rule; and, with a true loss just above .01, where 1 to 9
queries changed: comparisons give no interval then, gates judge by it.
"""

from benchbench.ir.gate import Outcome
from tests.ir.losses import GAINS, LOSS, judge_few_losses, judge_losses

GATES = 1_000
FEW = [(50, 0.1), (100, 0.1), (100, 0.2), (300, 0.2), (300, 0.5), (1_000, 0.5), (1_000, 1.0)]


def main() -> None:
    for name, gain in GAINS.items():
        for true_loss in (0.0, LOSS):
            for lenient in (True, False):
                counts = judge_losses(gain, true_loss, lenient=lenient, runs=GATES)
                shares = ", ".join(f"{outcome} {counts[outcome] / GATES:.1%}" for outcome in Outcome)
                rule = "unless_significant" if lenient else "default"
                print(f"{name}, true loss {true_loss:g}, {rule}: {shares}")
    for queries, size in FEW:
        few = judge_few_losses(queries, size, runs=GATES)[True]
        shares = ", ".join(f"{outcome} {few[outcome] / GATES:.1%}" for outcome in Outcome)
        print(f"1 to 9 of {queries} changed by {size:g}: {shares} of {GATES:,} gates")


if __name__ == "__main__":
    main()
