"""Axes of the first stage: the index, the text of a query, and how an engine, vectors and words are searched."""

from __future__ import annotations

from benchbench.ir.planning.ann import OF_STORES, Ann
from benchbench.ir.planning.axes.axis import METHODS, REWRITING, Axis, declare, in_another
from benchbench.ir.planning.axes.kinds import DEPTH, LLM, NAME, QUERY_TEXT, call, choice
from benchbench.ir.planning.configuration import SEARCH_MODES
from benchbench.ir.planning.engine import EngineSetting
from benchbench.ir.planning.labels import name_mode, strip_model_path
from benchbench.ir.planning.lexical import Lexical
from benchbench.ir.planning.query_text import AS_ASKED, query_text

AXES = declare(
    index=Axis(
        key="indexes",
        kind=NAME.or_null,
        touches=lambda run: run.needs_index,
        option="--indexes",
        label="Indexes",
        help="Names of indexes; the newest version of each is searched. Empty: the index that became ready last.",
        summary=lambda run: run.index or "",
        phrase=lambda value: f"index {value}",
        unstated="the only index",
    ),
    query=Axis(
        section=REWRITING,
        kind=QUERY_TEXT,
        canonical=query_text,
        touches=lambda run: run.rewrites,
        help="The text to search for: “as_asked, rewrite, hyde, multi(3)”. A language model writes a clearer "
        "query (rewrite), an answering passage (hyde, dense only), or 3 variants that are fused by "
        "rank (multi). Rerankers always read the original query.",
        summary=lambda run: f"query {run.query} by {strip_model_path(run.llm)}" if run.rewrites else "",
        phrase=lambda value: "query as asked" if value == AS_ASKED else f"query {value}",
    ),
    llm=Axis(
        section=REWRITING,
        key="llms",
        kind=LLM.or_null,
        touches=lambda run: run.rewrites,
        label="Language models",
        help="Models that rewrite queries, as SERVER:MODEL, with a server from the settings of this "
        "site: “ollama:llama3.2”.",
        unstated="no language model",
        name="language model",
        summary=in_another,
    ),
    search_mode=Axis(
        key="search_modes",
        kind=choice(*SEARCH_MODES),
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
    engine=Axis(
        key="engines",
        kind=call("a search engine such as shop(boost=2), or an object of it").or_null,
        expand=EngineSetting.expand,
        touches=lambda run: run.asks_engine,
        option="--engines",
        label="Search engines",
        help="Search engines that the site declares, with their parameters: “shop, shop(boost=1|2)”. For the modes "
        "that ask an engine.",
        unstated="no search engine",
        name="search engine",
        summary=in_another,
    ),
    ann=Axis(
        section=METHODS,
        kind=call("a setting such as hnsw(ef_search=100), or an object of it"),
        expand=Ann.expand,
        touches=lambda run: run.uses_vectors,
        help="“exact, hnsw(ef_search=40|100), faiss:hnsw(m=32)”: exact search in memory, a pgvector index, or a "
        f"vector store. compressed(precision=binary) compares the signs. All are held against exact search: "
        f"{', '.join(OF_STORES)}.",
        name="dense search",
    ),
    dimensions=Axis(
        section=METHODS,
        kind=DEPTH.or_null,
        touches=lambda run: run.uses_vectors,
        help="Number of leading vector dimensions that exact dense search compares, for Matryoshka encoders. "
        "“none, 128” compares all with 128. Empty: all.",
        phrase=lambda value: f"{value} dimensions",
        unstated="all dimensions",
    ),
    lexical=Axis(
        section=METHODS,
        kind=call("a setting such as bm25(k1=0.9, b=0.4), or an object of it"),
        expand=Lexical.expand,
        touches=lambda run: run.uses_words,
        label="Lexical search",
        help="“bm25, fts” compares BM25 with PostgreSQL’s full text; “bm25(k1=0.9|1.5, b=0.4|0.75)” tunes BM25 on the "
        "index as it is. language, words, stop and stem read the words otherwise: “bm25(language=german, words=code)”.",
        summary=lambda run: "" if run.lexical == "bm25" else run.lexical,
        phrase=lambda value: {"fts": "full text", "bm25": "BM25"}.get(value, str(value)),
    ),
)
