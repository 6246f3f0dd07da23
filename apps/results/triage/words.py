"""Terms of a query and its documents as the lexical search of a run read them, and reasons for empty rankings."""

from collections.abc import Sequence

from apps.records.lists.reading import filter_found
from apps.records.models import QueryResult, Run
from apps.retrieval.search.words import read_terms
from benchbench.ir.planning.lexical import Lexical
from benchbench.ir.planning.plan import plan

MAX_TERMS = 100  # of a text that are shown


def list_terms(run: Run, texts: Sequence[str]) -> list[list[str]] | None:
    """Return the first terms of each text by the analyzer of a run; None without lexical search."""
    if run.index is None or not run.configuration.uses_words:
        return None
    terms = read_terms(run.index, Lexical.parse(run.configuration.lexical), texts)
    return None if terms is None else [each[:MAX_TERMS] for each in terms]


def explain_nothing(result: QueryResult, terms: Sequence[str] | None) -> str:
    """Return why a ranking is empty, as a sentence; "" if it is not, or that is unknown. `terms` are the query's."""
    run = result.run
    if result.document_ids or result.error or run.is_external:
        return ""
    configuration, (planned,) = run.configuration, plan([("", run.configuration)]).runs
    if planned.threshold is not None and filter_found(run, planned).filter(query=result.query_id).exists():
        return f"The threshold {planned.threshold} removed all results."
    if configuration.uses_vectors or not configuration.uses_words or terms is None:
        return ""
    if not terms:
        return "No word of the query is left: the analyzer drops stop words, and perhaps words of one letter."
    if result.query.filters or configuration.filter_share is not None:
        return "No document that its filter admits has a word of the query."
    return "None of its words occurs in the collection."
