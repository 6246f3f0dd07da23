"""Words for the axes of the matrix: on the form, on the command line, in the label of a run, and in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchbench.ir.planning.ann import OF_STORES, Ann
from benchbench.ir.planning.configuration import Configuration
from benchbench.ir.planning.query_text import AS_ASKED

LONGEST_MODEL = 60  # characters of a model's name in that of an index or a combination
SEARCH, METHODS, RERANKING, REWRITING = "Search", "Dense, lexical, hybrid", "Reranking", "Text of the query"  # sections
EXECUTION = "Execution"


@dataclass(slots=True, kw_only=True)
class AxisWords:
    """The words for one axis.

    `option` names it on a command line; `label`, with the sentence `help`, in the `section` of the form; `name` in a
    table of axes. `choices` explains each of a few values. `summary` is its part of the label of a run, "" for none;
    `phrase` puts one value in a sentence, `unstated` None. Where the field is `top_k` and nothing else is stated, the
    name is "top k", the label "Top k" and the option "--top-k".
    """

    help: str
    section: str = ""
    name: str = ""
    label: str = ""
    option: str = ""
    choices: Mapping[Any, str] = field(default_factory=dict)
    summary: Callable[[Configuration], str] = lambda run: ""
    phrase: Callable[[Any], str] = str
    unstated: str = ""


def name_axis(name: str) -> str:
    """Return the name of a field's axis in a table of axes."""
    return AXIS_WORDS[name].name if name in AXIS_WORDS else name.replace("_", " ")


def describe_value(name: str, value: Any) -> str:
    """Return a field's value in a sentence."""
    words = AXIS_WORDS[name]
    return words.unstated if value is None and words.unstated else words.phrase(value)


def run_label(configuration: Configuration) -> str:
    """Return the label of a run, such as "hybrid · rrf 60 · top 100 · ≥ 0.5"."""
    return " · ".join(text for text in (AXIS_WORDS[name].summary(configuration) for name in IN_LABEL) if text)


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


def render_weights(weights: Sequence[float] | None) -> str:
    return " + ".join(f"{weight:.3g}" for weight in weights or ())


def _render_fusion(run: Configuration) -> str:
    if run.fusion == "rrf":
        return f"rrf {run.rrf_k}" if run.is_fused else ""
    return f"{run.fusion} {render_weights(run.weights)}".rstrip()


def _render_filter(share: float) -> str:
    return "all documents" if share == 1 else f"filter admits about {render_share(share)}"


def name_mode(mode: str, engine: str | None = None) -> str:
    """Return a search mode in words: "dense", "engine + lexical"; with an `engine`, by its name: "shop + lexical"."""
    return mode.replace("sparse", "lexical").replace("+", " + ").replace("engine", engine or "engine")


def _complete_words(section: str, **words: AxisWords) -> dict[str, AxisWords]:
    """Return the words of a section's axes by field, completed: what one does not state follows from its field."""
    for name, axis in words.items():
        axis.section = section
        axis.name = axis.name or name.replace("_", " ")
        axis.label = axis.label or axis.name[0].upper() + axis.name[1:]
        axis.option = axis.option or f"--{name.replace('_', '-')}"
    return words


AXIS_WORDS: dict[str, AxisWords] = {
    **_complete_words(
        SEARCH,
        index=AxisWords(
            option="--indexes",
            label="Indexes",
            help="Names of indexes; the newest version of each is searched. Empty: the index that became ready last.",
            summary=lambda run: run.index or "",
            phrase=lambda value: f"index {value}",
            unstated="the only index",
        ),
        search_mode=AxisWords(
            option="--modes",
            label="Modes",
            help="How the first stage finds chunks.",
            choices={
                "dense": "dense: by vectors",
                "sparse": "lexical: by words",
                "hybrid": "hybrid: both, fused",
                "engine": "engine: asks a search engine",
                "engine+dense": "engine + dense: both, fused",
                "engine+sparse": "engine + lexical: both, fused",
            },
            summary=lambda run: name_mode(run.search_mode, run.engine),
            phrase=name_mode,
        ),
        engine=AxisWords(
            option="--engines",
            label="Search engines",
            help="Search engines that the site declares, with their parameters: “shop, shop(boost=1|2)”. For the modes "
            "that ask an engine.",
            unstated="no search engine",
            name="search engine",
        ),
        top_k=AxisWords(
            help="Number of chunks that a run returns, at least the largest k. “50, 100” compares both.",
            summary=lambda run: f"top {run.top_k}",
            phrase=lambda value: f"top {value}",
        ),
        candidates=AxisWords(
            help="Number of chunks that the first stage retrieves before fusion and reranking. Empty: top k.",
            summary=lambda run: "" if run.candidates is None else f"{run.candidates} candidates",
            phrase=lambda value: f"{value} candidates",
            unstated="as many candidates as top k",
        ),
        score_threshold=AxisWords(
            option="--thresholds",
            label="Score thresholds",
            help="“none, 0.5” compares all results with those that score at least 0.5 on the mode's scale from 0 to 1.",
            summary=lambda run: "" if run.score_threshold is None else f"≥ {run.score_threshold}",
            phrase=lambda value: f"score ≥ {value:g}",
            unstated="no threshold",
            name="threshold",
        ),
        filter_share=AxisWords(
            help="“none, 0.1, 0.01” adds to every query a filter that admits this share of the documents, always the "
            "same ones, to see how filters affect recall and time. Not for modes that ask an engine. Empty: none.",
            summary=lambda run: "" if run.filter_share is None else _render_filter(run.filter_share),
            phrase=_render_filter,
            unstated="only the queries' own filters",
        ),
    ),
    **_complete_words(
        RERANKING,
        use_reranker=AxisWords(
            option="--rerank",
            help="Scores the first results again with a reranker: slower, often better.",
            summary=lambda run: f"rerank {strip_model_path(run.effective_reranker)}" if run.use_reranker else "",
            phrase=lambda value: "reranked" if value else "not reranked",
            name="reranking",
        ),
        reranker=AxisWords(
            help="Name of a sentence-transformers CrossEncoder. Empty: late-interaction, on token vectors of "
            "the index's encoder.",
            phrase=strip_model_path,
        ),
        rerank_depth=AxisWords(
            help="Number of chunks per query that the reranker reads; a reranked run returns only these. Empty: top k.",
            summary=lambda run: "" if run.rerank_depth is None else f"rerank depth {run.rerank_depth}",
            phrase=lambda value: f"reranks {value}",
            unstated="reranks all",
        ),
    ),
    **_complete_words(
        METHODS,
        ann=AxisWords(
            help="“exact, hnsw(ef_search=40|100), faiss:hnsw(m=32)”: exact search in memory, a pgvector index, or a "
            f"vector store. compressed(precision=binary) compares the signs. All are held against exact search: "
            f"{', '.join(OF_STORES)}.",
            summary=lambda run: "" if run.ann == "exact" else run.ann,
            name="dense search",
        ),
        lexical=AxisWords(
            label="Lexical search",
            help="The engine for lexical search.",
            choices={"bm25": "BM25", "fts": "PostgreSQL full text"},
            summary=lambda run: "" if run.lexical == "bm25" else run.lexical,
            phrase=lambda value: {"fts": "full text", "bm25": "BM25"}.get(value, str(value)),
        ),
        fusion=AxisWords(
            help="How hybrid search merges its two lists.",
            choices={"rrf": "by rank: RRF", "weighted": "by score: weighted sum of normalised scores"},
            summary=_render_fusion,
            phrase=lambda value: "weighted fusion" if value == "weighted" else f"{value} fusion",
        ),
        weights=AxisWords(
            help="Weights of dense and lexical in weighted fusion: “0.5:0.5, 0.7:0.3”. Empty: equal weights.",
            phrase=lambda value: f"weights {render_weights(value)}",
        ),
        rrf_k=AxisWords(
            help="Hybrid only: reciprocal rank fusion sums 1 / (k + rank). A small k trusts the first ranks more.",
            phrase=lambda value: f"RRF k {value}",
            name="RRF k",
        ),
        dimensions=AxisWords(
            help="Number of leading vector dimensions that exact dense search compares, for Matryoshka encoders. "
            "“none, 128” compares all with 128. Empty: all.",
            summary=lambda run: "" if run.dimensions is None else f"{run.dimensions} dimensions",
            phrase=lambda value: f"{value} dimensions",
            unstated="all dimensions",
        ),
    ),
    **_complete_words(
        REWRITING,
        query=AxisWords(
            help="The text to search for: “as_asked, rewrite, hyde, multi(3)”. A language model writes a clearer "
            "query (rewrite), an answering passage (hyde, dense only), or 3 variants that are fused by "
            "rank (multi). Rerankers always read the original query.",
            summary=lambda run: f"query {run.query} by {strip_model_path(run.llm)}" if run.rewrites else "",
            phrase=lambda value: "query as asked" if value == AS_ASKED else f"query {value}",
        ),
        llm=AxisWords(
            label="Language models",
            help="Models that rewrite queries, as SERVER:MODEL, with a server from the settings of this "
            "site: “ollama:llama3.2”.",
            unstated="no language model",
            name="language model",
        ),
    ),
    **_complete_words(
        EXECUTION,
        rate=AxisWords(
            option="--rate",
            label="Requests per second",
            help="In isolated execution, “none” waits for each answer before it sends the next query; “20/s” sends one "
            "every 50 ms, answered or not.",
            summary=lambda run: "" if run.rate is None else f"{run.rate:g}/s",
            phrase=lambda value: f"{value:g} requests per second",
            unstated="one query at a time",
        ),
    ),
}
IN_LABEL = (  # in the order in which a search goes
    *("index", "query", "search_mode", "ann", "dimensions", "lexical", "fusion", "filter_share"),
    *("candidates", "use_reranker", "rerank_depth", "top_k", "score_threshold", "rate"),
)
