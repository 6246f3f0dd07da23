"""Provenance of a run as `Run.provenance` stores it, read as records.

`apps.records.provenance` writes it. Rows of external runs and of runs that did not end have few of these facts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, ClassVar

from benchbench.ir.encoding import EncoderParameters
from benchbench.reading.objects import Checked, Listed, StrictRecord, fault, format_value, read_as


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment of a worker: the revisions of the models that it used by name, and its cores if recorded.

    `stored` is its JSON, from which `list_facts` reads all others.
    """

    stored: Mapping[str, Any]
    rerankers: Mapping[str, str]
    llms: Mapping[str, str]
    cores: int | None

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> "Environment":
        if not isinstance(data, dict):
            raise fault(f"must be an object, not {format_value(data)}")
        cores = data.get("processor", {}).get("cores")
        return cls(data, data.get("rerankers", {}), data.get("llms", {}), cores)

    @property
    def git_revision(self) -> str | None:
        return self.stored.get("git_revision")

    def list_facts(self, *, with_models: bool = True) -> dict[str, str]:
        """Return each fact by name: {"numpy": "2.4.0", "device": "cpu", …}; "none" for an unknown one."""
        facts = {key: value for key, value in self.stored.items() if not isinstance(value, dict)}
        models = (self.rerankers, self.llms) if with_models else ()
        for section in (self.stored.get("libraries", {}), *models, self.stored.get("settings", {})):
            facts |= section
        return {name: "none" if value is None else str(value) for name, value in facts.items()}


def collect_facts(environments: Iterable[Environment], *, with_models: bool = True) -> dict[str, set[str]]:
    """Return the values of each fact about workers, by name: {"numpy": {"2.4.0"}, "device": {"cpu"}, …}."""
    facts: dict[str, set[str]] = {}
    for environment in environments:
        for name, value in environment.list_facts(with_models=with_models).items():
            facts.setdefault(name, set()).add(value)
    return facts


@dataclass(frozen=True, slots=True)
class SearchedCollection(StrictRecord):
    """The collection that a run searched, in the state with this fingerprint."""

    IGNORES_OTHERS: ClassVar[bool] = True  # keys of a later version, while a site is upgraded

    id: str = ""
    name: str = ""
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class LLMParameters(StrictRecord):
    """The server of an index's language model, from its parameters."""

    IGNORES_OTHERS: ClassVar[bool] = True

    provider: str | None = None


@dataclass(frozen=True, slots=True)
class SearchedWords(StrictRecord):
    """The words of an index, by the parameters of its analyzer."""

    IGNORES_OTHERS: ClassVar[bool] = True

    parameters: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        analyzer = self.parameters.get("analyzer", {"language": "english", "words": "plain"})  # the first ones
        return f"{analyzer['language']}, words={analyzer['words']}"


@dataclass(frozen=True, slots=True)
class SearchedIndex(StrictRecord):
    """The index that a run searched; `content` is the hash of what it has."""

    IGNORES_OTHERS: ClassVar[bool] = True

    name: str = ""
    version: int | None = None
    content: str = ""
    encoder: str = ""
    encoder_revision: str = ""
    query_prompt: str | None = None
    document_prompt: str | None = None
    precision: str = "float32"
    lexical: SearchedWords | None = None
    llm: str = ""
    llm_parameters: LLMParameters = LLMParameters()  # frozen

    @property
    def encoder_name(self) -> str:
        """Return its encoder with the prompts and the precision that are not the model's."""
        changes = EncoderParameters(self.query_prompt, self.document_prompt, self.precision).list_changes()
        parameters = ", ".join(f"{name}={value!r}" for name, value in changes.items())
        return f"{self.encoder}({parameters})" if parameters else self.encoder

    @property
    def llm_name(self) -> str:
        """Return its language model with the server, such as ollama:llama3; "" without one."""
        return f"{self.llm_parameters.provider}:{self.llm}" if self.llm else ""


@dataclass(frozen=True, slots=True)
class AskedEngine(StrictRecord):
    """The search engine that a run asked, as its declaration describes it."""

    IGNORES_OTHERS: ClassVar[bool] = True

    alias: str = ""
    version: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunSource(StrictRecord):
    """The file of an external run."""

    IGNORES_OTHERS: ClassVar[bool] = True

    name: str
    sha256: str
    tags: Listed[str] = ()
    imported_at: str = ""


@dataclass(frozen=True, slots=True)
class RecallShare(StrictRecord):
    """The recall of approximate search at k over the queries that the store answered itself; None without any."""

    IGNORES_OTHERS: ClassVar[bool] = True

    k: int
    mean: float | None = None
    worst: float | None = None
    queries: int = 0


@dataclass(frozen=True, slots=True)
class Loss(StrictRecord):
    """The means of a measure by approximate and by exact search, and the difference; None if not measured."""

    measure: str
    approximate: float | None = None
    exact: float | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class PlannerChoice(StrictRecord):
    """The plan that PostgreSQL would choose by its costs, for a query under a filter."""

    IGNORES_OTHERS: ClassVar[bool] = True

    index_used: bool
    plan: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approximation(StrictRecord):
    """The facts about a run's approximate search; see `measure_approximations`.

    `notes` counts queries, `builds` those that each build of the index was searched for. `losses` are by the hash of
    the truth.
    """

    IGNORES_OTHERS: ClassVar[bool] = True

    setting: str = ""
    depth: int = 0
    bytes: int | None = None
    build_seconds: float | None = None
    index_used: bool = True
    chosen: PlannerChoice | None = None
    builds: dict[str, int] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    recall: Listed[RecallShare] = ()
    losses: dict[str, Loss] = field(default_factory=dict)
    ndcg: Loss | None = None

    @property
    def searched_exactly(self) -> int:
        """Return the number of queries for which exact search replaced the store."""
        return self.notes.get("searched_exactly", 0)

    @property
    def short(self) -> int:
        """Return the number of queries for which the store found too few chunks."""
        return self.notes.get("short", 0)

    @property
    def without_index(self) -> int:
        return self.notes.get("without_index", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance(StrictRecord):
    """Everything that a run's rankings were made from; `made_by` has the distinct environments of its workers."""

    KEYS: ClassVar[Mapping[str, str]] = {"approximation": "ann"}
    IGNORES_OTHERS: ClassVar[bool] = True

    collection: SearchedCollection | None = None
    index: SearchedIndex | None = None
    made_by: Listed[Annotated[Environment, Checked(Environment.from_dict, before=True)]] = ()
    engine: AskedEngine | None = None
    file: RunSource | None = None
    approximation: Approximation | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> "Provenance":
        return read_as(cls, data)

    @property
    def git_revision(self) -> str | None:
        """Return the revision of the code that ran the queries; None if it is unknown or there are several."""
        revisions = {worker.git_revision for worker in self.made_by}
        return revisions.pop() if len(revisions) == 1 else None

    def list_revisions(self, llm: str) -> list[str]:
        """Return the distinct revisions of a language model that the workers asked."""
        return sorted({worker.llms[llm] for worker in self.made_by if llm in worker.llms})


def describe_approximation(provenance: Mapping[str, Any], truth: str | None) -> dict[str, Any] | None:
    """Return the stored facts about approximate search, with the loss by the truth with this hash; None without any.

    The values of `ndcg` are None if the run was not measured by that truth.
    """
    facts = provenance.get("ann")
    if not facts:
        return None
    loss = facts["losses"].get(truth) or asdict(Loss(facts["ndcg"]["measure"]))
    return {name: value for name, value in facts.items() if name != "losses"} | {"ndcg": loss}


def add_loss(provenance: Mapping[str, Any], truth: str, loss: Loss, *, is_own: bool) -> None:
    """Add the loss by the truth with this hash to stored facts; `is_own` if that is of the benchmark's version."""
    facts = provenance["ann"]
    facts["losses"] = {**facts.get("losses", {}), truth: asdict(loss)}
    if is_own:
        facts["ndcg"] = asdict(loss)
