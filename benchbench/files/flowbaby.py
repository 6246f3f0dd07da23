"""Reading Flowbaby datasets (a directory of metadata.json, topics.json and qrels.json) and Flowbaby runs."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from benchbench.errors import FileFormatError
from benchbench.files.ratings import parse_grade
from benchbench.ir import canonical
from benchbench.ir.canonical import Run, RunEntry
from benchbench.ir.records import ScoredDocuments
from benchbench.reading.objects import Checked, Filled, Must, StrictRecord, Strings, read_as, read_list, refuse
from benchbench.reading.strict_json import dump_array, dump_json, read_value

SPLITS = ("train", "validation", "test")
GRADES = range(3)
DEFAULT_GRADE = 1
DEFAULT_SLICE = "default"
OrderBy = Literal["agree", "rank", "score"]


@dataclass(frozen=True, slots=True)
class Metadata(StrictRecord):
    """Metadata of a dataset."""

    dataset_id: str
    version: str = "1.0"
    description: str = ""
    slice_definitions: dict[str, object] = field(default_factory=dict)
    canonicalization_version: str = canonical.CURRENT
    created: str = ""
    updated: str = ""
    notes: str = ""


@dataclass(frozen=True, slots=True)
class Topic(StrictRecord):
    """A query; without a slice it is in `default`."""

    KEYS = {"key": "query_id", "text": "query_text", "slices": "slice_ids"}

    key: Filled
    text: Filled
    slices: Annotated[Strings, Checked(lambda slices: slices or (DEFAULT_SLICE,))]
    notes: str = ""
    expected_positive_count: Annotated[int | None, Must("an integer from 0", lambda count: (count or 0) >= 0)] = None
    split: Annotated[str, Must("train, validation or test", ("", *SPLITS).__contains__)] = ""


def _parse_grade(value: object) -> Any:
    grade = parse_grade(value)
    return value if grade is None else grade


Relevance = Annotated[int, Must("0, 1 or 2", GRADES.__contains__), Checked(_parse_grade, before=True)]


@dataclass(frozen=True, slots=True)
class Judgment(StrictRecord):
    """Relevance of an item to a query."""

    query_id: Filled
    canonical_item_id: Filled
    relevance: Relevance = DEFAULT_GRADE


@dataclass(frozen=True, slots=True)
class Dataset:
    """Topics in file order and, for those that are judged, the grades by item.

    `duplicates` counts equal repeated judgments; `warnings` are sentences about suspicious content.
    """

    metadata: Metadata
    topics: tuple[Topic, ...]
    qrels: Mapping[str, Mapping[str, int]]
    duplicates: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def split(self) -> str | None:
        """Return the split that all topics are in, if they share one."""
        splits = {topic.split for topic in self.topics}
        return next(iter(splits)) or None if len(splits) == 1 else None

    def select_split(self, split: str) -> "Dataset":
        """Return the part whose topics are in `split`. Raises FileFormatError if no topic is."""
        topics = tuple(topic for topic in self.topics if topic.split == split)
        if not topics:
            splits = ", ".join(sorted({topic.split for topic in self.topics if topic.split})) or "none"
            raise FileFormatError(
                f"{self.metadata.dataset_id} has no topic in the split {split!a}; its topics are in: {splits}.",
                field="split",
            )
        keys = {topic.key for topic in topics}
        return replace(self, topics=topics, qrels={key: grades for key, grades in self.qrels.items() if key in keys})


def read_dataset(directory: Path) -> Dataset:
    """Return the dataset in a directory; metadata.json may be missing, and each file may be a `.gz`.

    Raises a BenchbenchError for content that breaks docs/formats.md, such as an unknown canonicalization version, a
    judgment of a query that topics.json lacks, or an item judged twice with different grades. An undeclared slice, an
    expected_positive_count that contradicts the judgments and a missing metadata.json give warnings.
    """
    if not directory.is_dir():
        raise FileFormatError(f"{directory} is not a directory: a Flowbaby dataset is a directory with topics.json.")
    metadata = _read_metadata(directory)
    topics = read_list(Topic, _load_value(directory, "topics.json"), prefix="topics.json")
    repeated = [key for key, count in Counter(topic.key for topic in topics).items() if count > 1]
    if repeated or not topics:
        problem = f"has the query_id {repeated[0][:60]!a} more than once" if repeated else "contains no topics"
        raise FileFormatError(f"topics.json {problem}.", field="query_id")
    qrels, duplicates = _parse_qrels(_load_value(directory, "qrels.json"), {topic.key for topic in topics})
    warnings = [*_warnings(metadata, topics, qrels)]
    if _find_path(directory, "metadata.json") is None:
        warnings.append(
            "metadata.json was not found: the dataset is named after its folder, and its ids are read "
            f"with canonicalization version {metadata.canonicalization_version}."
        )
    return Dataset(metadata, topics, qrels, duplicates, tuple(warnings))


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """Return the grades of each query by item from a qrels.json alone."""
    return _parse_qrels(read_value(path))[0]


def read_run(path: Path) -> Run:
    """Return a run unchanged; NaN and infinite scores are refused."""
    return read_as(Run, read_value(path), prefix=f"{path.name}, ")


def render_run(run_id: str, entries: Iterable[RunEntry]) -> Iterator[str]:
    """Yield the text of a run.json, one line per entry."""
    yield f'{{"run_id": {dump_json(run_id)}, "entries": '
    names = [each.name for each in fields(RunEntry)]  # `asdict` copies each value, slowly
    yield from dump_array({name: getattr(entry, name) for name in names} for entry in entries)
    yield "}\n"


def list_rankings(run: Run, *, order_by: OrderBy = "agree") -> dict[str, list[str]]:
    """Return the items of each query of a run, best first.

    By score: as float32, falling, and equal ones by falling id. By rank: rising. The default is by score; a run whose
    scores rise somewhere down its ranks is refused. A repeated rank or item in a query is refused too.
    """
    if order_by not in get_args(OrderBy):
        raise FileFormatError(f"A run must be ordered by rank or by score, not by {order_by!a}.", field="order_by")
    by_query: dict[str, list[RunEntry]] = {}
    for entry in run.entries:
        by_query.setdefault(entry.query_id, []).append(entry)
    label = f"The run {run.run_id[:60]!a}, query"
    return {query: _rank_entries(f"{label} {query[:60]!a},", entries, order_by) for query, entries in by_query.items()}


def _rank_entries(label: str, entries: list[RunEntry], order_by: OrderBy) -> list[str]:
    by_rank = sorted(entries, key=lambda entry: entry.rank)
    if order_by != "score":
        for above, below in pairwise(by_rank):
            if above.rank == below.rank:
                raise FileFormatError(
                    f"{label} has the rank {above.rank} twice: order it by score.",
                    field="order_by",
                    by_command="--order-by score",
                )
            if order_by == "agree" and above.score < below.score:
                raise FileFormatError(
                    f"{label} has ranks and scores that disagree: rank {above.rank} has the score "
                    f"{above.score}, and rank {below.rank} has {below.score}. Order it by rank or by score.",
                    field="order_by",
                    by_command="--order-by rank or --order-by score",
                )
    scored = ScoredDocuments(label, [entry.canonical_item_id for entry in by_rank], [entry.score for entry in by_rank])
    by_score = scored.rank()
    return scored.documents if order_by == "rank" else by_score


def _read_metadata(directory: Path) -> Metadata:
    path = _find_path(directory, "metadata.json")
    document = read_value(path) if path else {}
    if isinstance(document, dict) and document.get("dataset_id") is None:
        document["dataset_id"] = directory.resolve().name
    metadata = read_as(Metadata, document, prefix="metadata.json, ")
    canonical.get_rules(metadata.canonicalization_version)
    return metadata


def _parse_qrels(value: object, keys: set[str] | None = None) -> tuple[dict[str, dict[str, int]], int]:
    """Return the grades of each query by item, and the number of equal repetitions; `keys` are the topics' keys."""
    qrels: dict[str, dict[str, int]] = {}
    judgments = read_list(Judgment, value, prefix="qrels.json")
    for index, judgment in enumerate(judgments):
        query, item, grade = judgment.query_id, judgment.canonical_item_id, judgment.relevance
        if keys is not None and query not in keys:
            refuse(f"qrels.json[{index}].query_id", f"is {query[:60]!a}, which topics.json does not have")
        before = qrels.setdefault(query, {}).setdefault(item, grade)
        if before != grade:
            problem = f"is {grade}, but item {item[:60]!a} was graded {before} before"
            refuse(f"qrels.json[{index}].relevance", problem)
    return qrels, len(judgments) - sum(map(len, qrels.values()))


def _warnings(metadata: Metadata, topics: Iterable[Topic], qrels: Mapping[str, Mapping[str, int]]) -> Iterable[str]:
    names = dict.fromkeys(name for topic in topics for name in topic.slices if name != DEFAULT_SLICE)
    for name in names:
        if name not in metadata.slice_definitions:
            yield f"The slice {name[:60]!a} is not among the slice_definitions of metadata.json."
    for topic in topics:
        positives = sum(grade > 0 for grade in qrels.get(topic.key, {}).values())
        if topic.expected_positive_count not in (None, positives):
            yield (
                f"The topic {topic.key[:60]!a} expects {topic.expected_positive_count} relevant items, and qrels.json "
                f"has {positives}."
            )


def _find_path(directory: Path, name: str) -> Path | None:
    return next((path for path in (directory / name, directory / f"{name}.gz") if path.is_file()), None)


def _load_value(directory: Path, name: str) -> Any:
    path = _find_path(directory, name)
    if path is None:
        raise FileFormatError(f"{directory} must contain {name} to be a Flowbaby dataset.")
    return read_value(path)


def write_dataset(dataset: Dataset) -> dict[str, Iterator[str]]:
    """Return the files of a valid dataset by name, in pieces."""
    about = {name: value for name, value in asdict(dataset.metadata).items() if value}
    return {
        "metadata.json": iter([dump_json(about, indent=2), "\n"]),
        "topics.json": _list(map(_convert_topic, dataset.topics)),
        "qrels.json": _list(
            {"query_id": query, "canonical_item_id": item, "relevance": grade}
            for query, grades in dataset.qrels.items()
            for item, grade in grades.items()
        ),
    }


def _convert_topic(topic: Topic) -> dict[str, object]:
    fields: dict[str, object] = {"query_id": topic.key, "query_text": topic.text, "slice_ids": topic.slices}
    if topic.expected_positive_count is not None:
        fields["expected_positive_count"] = topic.expected_positive_count
    return fields | {name: value for name in ("notes", "split") if (value := getattr(topic, name))}


def _list(items: Any) -> Iterator[str]:
    yield from dump_array(items)
    yield "\n"
