"""Declarations of retrieval strategies: their words and parameters, which `apps/retrieval/strategies` implement.

Form, command, API and experiments use them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from benchbench.ir.trees import REDUCTIONS
from benchbench.reading.kinds import Kind, int_between


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a strategy. Its values have the type of its `default` and are of its `kind`.

    `of_search`: it affects searching, not the chunks. The form and the command offer parameters with a `label`, with
    the sentence `help`. `choices` explains each of a few values.
    """

    default: bool | int | float | str
    kind: Kind | None = None
    of_search: bool = False
    label: str = ""
    help: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy: `words` say with what a query is compared, `notes` what its parameters mean, of which there is an
    `example`, with an `opening`.

    `levels` is how many its pieces have: 1 where all are chunks. One that `requires_llm` `asks` the language model of
    its index while it searches, or else while it is built.
    """

    words: str
    parameters: Mapping[str, Parameter]
    notes: str = ""
    levels: int = 1
    requires_llm: bool = False
    asks: bool = False
    opening: str = ""

    @property
    def defaults(self) -> dict[str, object]:
        return {name: parameter.default for name, parameter in self.parameters.items()}

    @property
    def example(self) -> str:
        """Return the strategy's parameters with their defaults, as JSON."""
        return self.opening + json.dumps(self.defaults)


def _either(*words: str) -> Kind:
    return Kind(Literal[words], " or ".join(words))


TOP, SHARE = int_between(1, 1000), Kind(Annotated[float, Field(ge=0, le=1)])
SIZES = {"size": Parameter(500), "overlap": Parameter(50)}  # of chunks, in characters; they must go together
FIT = "fit_encoder"  # divides chunks that the encoder would not read to their end
WINDOWS = {**SIZES, "title": Parameter(False), "sections": Parameter(False), FIT: Parameter(False)}
LEVELS = {
    **SIZES,
    FIT: Parameter(False),
    "doc_top_k": Parameter(
        5, TOP, True, "Documents", "Level of detail: how many of the best documents to search further."
    ),
    "section_top_k": Parameter(
        10, TOP, True, "Sections", "Level of detail: how many of their best sections to search further."
    ),
}
TREE = {
    **SIZES,
    FIT: Parameter(False),
    "max_layers": Parameter(3, int_between(1, 10), False, "Layers", "Tree: the maximum number of layers of summaries."),
    "cluster_threshold": Parameter(0.1, SHARE),
    "context": Parameter(8000, int_between(100, 1_000_000)),
    "reduction": Parameter("pca", _either(*REDUCTIONS)),
    "seed": Parameter(42, int_between(0, 2**32 - 1)),
    "search": Parameter(
        "collapsed",
        _either("collapsed", "tree"),
        True,
        "Search of a tree",
        "A matching summary returns the chunks below it.",
        {"collapsed": "collapsed: chunks and summaries as one list", "tree": "layer by layer, from the top"},
    ),
    "credit": Parameter("leaves", _either("leaves", "none"), of_search=True),
    "layer_top_k": Parameter(5, TOP, of_search=True),
}
OF_LEVELS = "how many documents and sections to search further"
OF_TREES = (
    "context is the amount of text per summary; reduction is pca or umap, search collapsed or tree, "
    "credit leaves or none"
)
STRATEGIES = {
    "flat": Strategy(
        "flat: with every chunk",
        WINDOWS,
        "sections cuts each section by itself, and fit_encoder divides what the encoder would not read to its end",
        opening='{} for whole documents, {"fit_encoder": true} for these too, or ',
    ),
    "lod_embed": Strategy(
        "level of detail: with documents, then their sections, then the chunks of those", LEVELS, OF_LEVELS, levels=3
    ),
    "lod_llm": Strategy(
        "level of detail by a language model, which picks documents and sections",
        LEVELS,
        OF_LEVELS,
        levels=3,
        requires_llm=True,
        asks=True,
    ),
    "raptor": Strategy(
        "tree of summaries by a language model: with chunks, and with summaries of what is near",
        TREE,
        OF_TREES,
        requires_llm=True,
    ),
    "raptor_extractive": Strategy("tree of summaries by first sentences, without a language model", TREE, OF_TREES),
}
ASKING = [name for name, strategy in STRATEGIES.items() if strategy.requires_llm]
INPUTS = {  # of any strategy, that the form and the command ask for
    name: parameter
    for strategy in STRATEGIES.values()
    for name, parameter in strategy.parameters.items()
    if parameter.label
}
