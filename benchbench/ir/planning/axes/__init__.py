"""The axes of the matrix, each one object, by what of a search they set."""

from dataclasses import replace

from benchbench.ir.planning.axes import lists, results, search
from benchbench.ir.planning.configuration import DEFAULTS, Configuration

IN_LABEL = search.AXES | lists.AXES | results.AXES  # in the order in which a search goes
AXES = {name: IN_LABEL[name] for name in DEFAULTS}  # by field
BY_KEY = {axis.key: axis for axis in AXES.values()}  # the last varies fastest


def run_label(run: Configuration) -> str:
    """Return the label of a run, such as "hybrid · rrf 60 · top 100 · ≥ 0.5"."""
    return " · ".join(text for text in (axis.summarize(run) for axis in IN_LABEL.values()) if text)


def normalize(run: Configuration) -> Configuration:
    """Return the same search in normal form: keys that do not affect it are at their default."""
    plain = {}
    for name, axis in AXES.items():
        if not axis.touches(run):
            plain[name] = axis.default
        elif axis.plain:
            plain[name] = axis.plain(run)
    return replace(run, **plain)
