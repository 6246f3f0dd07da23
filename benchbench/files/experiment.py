"""Experiments: the YAML file of a retrieval-strategy benchmark (docs/formats.md)."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from benchbench.errors import FileFormatError
from benchbench.ir.chunking import ChunkingError, check_chunk_parameters
from benchbench.ir.encoding import DEFAULT, LONGEST_PROMPT, PRECISIONS
from benchbench.ir.planning.ann import STORES
from benchbench.ir.planning.strategies import STRATEGIES
from benchbench.reading import strict_yaml
from benchbench.reading.kinds import Kind, int_between, one_of
from benchbench.reading.objects import Listed, StrictRecord, read_as
from benchbench.reading.strict_json import read_text

PRESETS = {"quick_test": (5, 1), "baseline": (10, 3), "full": (None, 5)}  # max_documents, runs_per_query
MOST_CHUNKS = 1000


def _number(maximum: float) -> Kind:
    return Kind(Annotated[int | float, Field(ge=0, le=maximum)], f"a number from 0 to {maximum:g}")


def _check_printable(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError
    return text


def _check_different(values: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(values)) < len(values):
        raise ValueError
    return values


TEXT = Kind(
    Annotated[str, Field(max_length=500), AfterValidator(_check_printable)], "a text of 1 to 500 printable characters"
)
NAME = Kind(
    Annotated[str, Field(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,99}\z")],
    "up to 100 letters, digits, dots, hyphens and underscores, since it names a directory",
)
CUTOFFS = Kind(
    Annotated[
        Listed[Annotated[int, Field(ge=1, le=MOST_CHUNKS)]], Field(min_length=1), AfterValidator(_check_different)
    ],
    f"a list of different whole numbers from 1 to {MOST_CHUNKS:,}",
)
ANY_TEXT = Kind(str, "a text")
PROMPT = Kind(
    Annotated[str, Field(max_length=LONGEST_PROMPT)], f"a text of at most {LONGEST_PROMPT:,} characters, or null"
)
OMITTED = asdict(DEFAULT)
COUNT, CHUNKS = int_between(1, 10**9), int_between(1, MOST_CHUNKS)


@dataclass(frozen=True, slots=True)
class Data(StrictRecord):
    """Documents and questions of an experiment. Relative paths start at the directory of the YAML file."""

    documents_dir: Annotated[str, TEXT]
    ground_truth_path: Annotated[str, TEXT]
    max_documents: Annotated[int | None, COUNT] = None
    max_queries: Annotated[int | None, COUNT] = None


@dataclass(frozen=True, slots=True)
class Repetition(StrictRecord):
    """Settings of the measuring. `top_k_values` are cutoffs of one search, made at the greatest of them."""

    runs_per_query: Annotated[int, int_between(1, 100)] = 3
    top_k_values: Annotated[tuple[int, ...], CUTOFFS] = (1, 3, 5, 10)
    random_seed: Annotated[int, int_between(0, 2**63 - 1)] = 42


@dataclass(frozen=True, slots=True)
class Embedding(StrictRecord):
    """An embedding model, the library or service that runs it, and its parameters (`benchbench.ir.encoding`)."""

    model: Annotated[str, TEXT]
    provider: Annotated[str, TEXT] = "sbert"
    query_prompt: Annotated[str | None, PROMPT] = None
    document_prompt: Annotated[str | None, PROMPT] = None
    precision: Annotated[str, one_of(*PRECISIONS)] = DEFAULT.precision


@dataclass(frozen=True, slots=True)
class LLM(StrictRecord):
    """A language model and the service that runs it."""

    model: Annotated[str, TEXT]
    provider: Annotated[str, TEXT] = "ollama"
    base_url: Annotated[str | None, TEXT] = None
    temperature: Annotated[float, _number(10)] = 0.1
    max_tokens: Annotated[int, int_between(1, 10**6)] = 500


@dataclass(frozen=True, slots=True)
class Backend(StrictRecord):
    """A vector store. `path` is read and ignored: stores keep their files among the site's data."""

    name: Annotated[str, one_of(*STORES)]
    path: Annotated[str | None, TEXT] = None


@dataclass(frozen=True, slots=True)
class Strategy(StrictRecord):
    """A chunking and search strategy, with sizes in characters.

    `doc_top_k` and `section_top_k` are the numbers of documents and sections that the lod strategies keep at each
    level. Results are cut at `top_k_values`. `max_layers` and `cluster_threshold` shape the tree of raptor.
    """

    name: Annotated[str, one_of(*STRATEGIES)]
    chunk_size: Annotated[int, int_between(1, 10**6)] = 500
    chunk_overlap: Annotated[int, int_between(0, 10**6)] = 50
    doc_top_k: Annotated[int, CHUNKS] = 5
    section_top_k: Annotated[int, CHUNKS] = 10
    max_layers: Annotated[int, int_between(1, 100)] = 3
    cluster_threshold: Annotated[float, _number(1)] = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment(StrictRecord):
    """An experiment with every default filled in."""

    id: Annotated[str, NAME]
    description: Annotated[str, ANY_TEXT] = ""
    data: Data
    benchmark: Repetition = Repetition()
    embeddings: Listed[Embedding]
    llms: Listed[LLM] = ()
    backends: Listed[Backend]
    strategies: Listed[Strategy]

    def as_dict(self) -> dict[str, object]:
        """Return the experiment as plain JSON in the format's order, for `parse_experiment`, with every default."""
        return asdict(self, dict_factory=_convert_lists)

    def as_yaml(self) -> str:
        """Return the experiment as a YAML file with every key."""
        return strict_yaml.dump(self.as_dict())

    def apply_preset(self, name: str) -> "Experiment":
        """Return the experiment at the size of a preset: its numbers of documents and of runs per query."""
        documents, repetitions = PRESETS[name]
        return replace(
            self,
            data=replace(self.data, max_documents=documents),
            benchmark=replace(self.benchmark, runs_per_query=repetitions),
        )


def read_experiment(path: Path) -> Experiment:
    """Return the experiment of a YAML file. Errors name file and key."""
    return parse_experiment(strict_yaml.parse(read_text(path), location=path.name), location=path.name)


def parse_experiment(value: object, *, location: str) -> Experiment:
    """Return the experiment that plain data describes; `location` names the file in errors.

    A null key counts as absent. Raises InvalidKeyError or FileFormatError, with file and key, for unknown, missing and
    invalid keys, for repeated list entries, and for a strategy that needs a language model if `llms` is empty.
    """
    experiment = read_as(Experiment, value, prefix=f"{location}, ")
    for key in ("embeddings", "llms", "backends", "strategies"):
        _check_entries(getattr(experiment, key), key, f"{location}, ")
    for index, strategy in enumerate(experiment.strategies):
        _check_chunks(strategy, f"{location}, strategies[{index}].chunk_overlap")
        if STRATEGIES[strategy.name].requires_llm and not experiment.llms:
            problem = f"strategies[{index}] ({strategy.name}) needs a language model: name one in llms"
            raise FileFormatError(f"{location}, {problem}.", field="llms")
    return experiment


def _check_entries(entries: Sequence[object], key: str, prefix: str) -> None:
    if not entries and key != "llms":
        raise FileFormatError(f"{prefix}{key} must not be an empty list.", field=key)
    places: dict[object, int] = {}
    for index, entry in enumerate(entries):
        if (first := places.setdefault(entry, index)) < index:
            raise FileFormatError(f"{prefix}{key}[{index}] repeats {key}[{first}].", field=f"{key}[{index}]")


def _check_chunks(strategy: Strategy, location: str) -> None:
    try:
        check_chunk_parameters(size=strategy.chunk_size, overlap=strategy.chunk_overlap)
    except ChunkingError as error:
        raise FileFormatError(f"{location}: {error.message}", field="chunk_overlap") from None


def _convert_lists(pairs: Iterable[tuple[str, object]]) -> dict[str, object]:
    """Return a record as a dict with lists, without the parameters of an encoder that are the model's."""
    written = [(key, value) for key, value in pairs if key not in OMITTED or value != OMITTED[key]]
    return {key: list(value) if isinstance(value, tuple) else value for key, value in written}


def select_documents(ids: Sequence[str], expected: Collection[str], limit: int) -> list[str]:
    """Return the `ids` that an experiment keeps, in their order: all expected ones, then the first others.

    At most `limit` are kept, unless more are expected.
    """
    expected = set(expected)
    needed = [id for id in ids if id in expected]
    unexpected = [id for id in ids if id not in expected]
    chosen = {*needed, *unexpected[: max(0, limit - len(needed))]}
    return [id for id in ids if id in chosen]
