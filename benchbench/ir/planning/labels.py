"""Words for values of a configuration: modes, shares, models, settings of dense search."""

from __future__ import annotations

from collections.abc import Iterable

from benchbench.ir.planning.ann import Ann

LONGEST_MODEL = 60  # characters of a model's name in that of an index or a combination


def label_settings(settings: Iterable[str]) -> dict[str, str]:
    """Return a label of each setting: its text, with the default of an option in which alone another differs."""
    parsed = {text: Ann.parse(text) for text in settings}
    labels = {}
    for text, setting in parsed.items():
        rivals = [rival.options for rival in parsed.values() if rival.name == setting.name]
        differences = [dict(set(setting.options) - set(options)) for options in rivals]
        labels[text] = setting.render([name for options in differences if len(options) == 1 for name in options])
    return labels


def render_share(share: float) -> str:
    """Return a share of the documents as `0.1 %`."""
    return f"{100 * share:.3g} %"


def shorten_model(name: str) -> str:
    """Return the last part of a model's name, shortened if it is long."""
    short = strip_model_path(name) or name
    return short if len(short) <= LONGEST_MODEL else f"{short[: LONGEST_MODEL - 1]}…"


def strip_model_path(name: object) -> str:
    """Return the name of a model without the folders before it."""
    return str(name).rstrip("/").rpartition("/")[2]


def name_mode(mode: str, engine: str | None = None) -> str:
    """Return a search mode in words: "dense", "engine + lexical"; with an `engine`, by its name: "shop + lexical"."""
    return mode.replace("sparse", "lexical").replace("+", " + ").replace("engine", engine or "engine")
