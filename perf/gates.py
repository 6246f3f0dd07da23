"""Outcomes of gates that allow a loss of .01, over 30 queries with a true loss of .05 or none, by either rule."""

from benchbench.ir.gate import Outcome
from tests.ir.losses import GAINS, LOSS, judge_losses

GATES = 1_000


def main() -> None:
    for name, gain in GAINS.items():
        for true_loss in (0.0, LOSS):
            for lenient in (True, False):
                counts = judge_losses(gain, true_loss, lenient=lenient, runs=GATES)
                shares = ", ".join(f"{outcome} {counts[outcome] / GATES:.1%}" for outcome in Outcome)
                rule = "unless_significant" if lenient else "default"
                print(f"{name}, true loss {true_loss:g}, {rule}: {shares}")


if __name__ == "__main__":
    main()
