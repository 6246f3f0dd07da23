"""Level of detail: documents, then sections, then chunks, chosen by embeddings alone or by a language model."""

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from apps.collections.records import DocumentRecord
from apps.retrieval.llms.clients import Reply, has_text
from apps.retrieval.strategies.base import Answer, Asked, Mask, Parameters, Piece, RetrievalStrategy, View, vectors_of
from apps.retrieval.strategies.flat import windows
from benchbench.ir.chunking import first_sentences
from benchbench.ir.records import Calls, Positions, ScoredList

CHUNKS, SECTIONS, DOCUMENTS = range(3)


class LODEmbedStrategy(RetrievalStrategy):
    """Level of detail by embeddings. Chunks are those of `flat` with `sections: true`, without the title.

    Above them, a section is represented by its heading and first sentences, a document by its title and summary. A
    query is compared with all documents, then with the sections of the best `doc_top_k`, then with the chunks of the
    best `section_top_k` of those. This counts as three encodings of the query, as its authors count.
    """

    def chunks(self, document: DocumentRecord, parameters: Parameters) -> Iterable[Piece]:
        leaves = windows(document, parameters)
        if not leaves:
            return []
        of_section: dict[int | None, list[int]] = {}
        for place, leaf in enumerate(leaves):
            of_section.setdefault(leaf.section, []).append(place)
        sections = [section_piece(document, number, leaves, places) for number, places in of_section.items()]
        text = f"{document.title} {document.summary}".strip()
        whole = Piece(text, 0, len(document.text), DOCUMENTS, children=tuple(range(len(sections))))
        return [*leaves, *sections, whole]

    def search(self, queries: Sequence[Asked], view: View, depth: int, parameters: Parameters) -> list[Answer]:
        vectors = vectors_of(queries)
        documents = view.nearest(vectors, parameters["doc_top_k"], on_level(view, queries, DOCUMENTS))
        sections = view.nearest(vectors, parameters["section_top_k"], below(view, queries, documents))
        chunks = view.nearest(vectors, depth, below(view, queries, sections))
        return [Answer(ranked, Calls(embed=3)) for ranked in chunks]


def section_piece(document: DocumentRecord, number: int | None, leaves: Sequence[Piece], places: list[int]) -> Piece:
    """Return the summary piece of the chunks at `places`, which belong to one section or to none."""
    start, end = leaves[places[0]].start, leaves[places[-1]].end
    heading = document.title if number is None else document.sections[number].heading
    body = re.sub(rf"\A\s*#*\s*{re.escape(heading)}\s*#*\s*", "", document.text[start:end])
    text = f"{heading} {first_sentences(body)}".strip() or leaves[places[0]].text
    return Piece(text, start, end, SECTIONS, number, tuple(places))


def on_level(view: View, queries: Sequence[Asked], level: int) -> list[Mask]:
    """Return the admitted positions of a level for each query. Queries with the same filter share a mask."""
    of_level: Mask = view.levels == level
    masks = {id(query.mask): of_level if query.mask is None else of_level & query.mask for query in queries}
    return [masks[id(query.mask)] for query in queries]


def below(view: View, queries: Sequence[Asked], lists: Sequence["ScoredList | _Pick"]) -> list[Mask]:
    """Return for each query the mask of the admitted children of its found positions."""
    masks = []
    for query, found in zip(queries, lists, strict=True):
        mask = np.zeros(len(view.levels), bool)
        mask[view.children_of(found.ids)] = True
        masks.append(mask if query.mask is None else mask & query.mask)
    return masks


OFFERED = 50  # maximum of documents or sections in a prompt: those nearest to the query
PROMPT = """Choose the {what} most likely to answer the question. Choose at most {most}.
Answer with their ids alone, the best first, separated by commas.

Question: {question}

{offered}

Ids:"""


@dataclass(frozen=True, slots=True)
class _Pick:
    """The chosen positions (p,), the model's reply, and whether they are a fallback because it named none offered.

    Without candidates the model is not asked: `reply` stays None.
    """

    ids: Positions
    reply: Reply | None
    is_fallback: bool


class LODLLMStrategy(LODEmbedStrategy):
    """Level of detail by a language model, with the levels and chunks of `lod_embed`.

    Each query asks the model twice: for at most `doc_top_k` documents by their summaries, and for at most
    `section_top_k` of their sections. An offered id counts if the answer has it as a whole token. If the answer has
    none, the nearest to the query are used, as in `lod_embed`.
    """

    def search(self, queries: Sequence[Asked], view: View, depth: int, parameters: Parameters) -> list[Answer]:
        return [self._answer(query, view, depth, parameters) for query in queries]

    def _answer(self, query: Asked, view: View, depth: int, parameters: Parameters) -> Answer:
        started = time.perf_counter()
        (admitted,) = on_level(view, [query], DOCUMENTS)
        documents = _pick(query, view, admitted, "documents", parameters["doc_top_k"])
        (within,) = below(view, [query], [documents])
        sections = _pick(query, view, within, "sections", parameters["section_top_k"])
        (ranked,) = view.nearest(query.vector[None], depth, below(view, [query], [sections]))
        replies = [reply for reply in (documents.reply, sections.reply) if reply]
        # For a cached answer, count the time that the model took, not that of the look-up.
        ms = (time.perf_counter() - started) * 1000 + sum(reply.ms - reply.waited_ms for reply in replies)
        cached = sum(reply.is_cached for reply in replies)
        return Answer(ranked, Calls(1, len(replies), cached, documents.is_fallback or sections.is_fallback), ms)


def _pick(query: Asked, view: View, mask: Mask, what: str, most: int) -> _Pick:
    """Ask the model to choose at most `most` of the positions that `mask` admits."""
    (near,) = view.nearest(query.vector[None], OFFERED, [mask])
    if not len(near):
        return _Pick(near.ids, None, False)
    offered = np.sort(near.ids)
    told = view.described(offered)
    names = labels([(piece.document, piece.section) for piece in told], with_sections=what == "sections")
    lines = "\n".join(f"- {name}: {' '.join(piece.text.split())}" for name, piece in zip(names, told, strict=True))
    reply = view.ask(PROMPT.format(what=what, most=most, question=query.text, offered=lines), has_text)
    named = picked(reply.text, names)[:most]
    return _Pick(offered[named] if named else near.ids[:most], reply, not named)


def labels(ids: Sequence[tuple[str, str]], *, with_sections: bool) -> list[str]:
    """Return distinct names for the offered documents or sections.

    A section's name is its id, preceded by its document's if two are equal. Text outside sections is named as its
    document.
    """
    own = [(section if with_sections else "") or document for document, section in ids]
    return [
        name if own.count(name) == 1 else f"{document}/{name}" for name, (document, _) in zip(own, ids, strict=True)
    ]


def picked(answer: str, names: Sequence[str]) -> list[int]:
    """Return the indices of the `names` that an answer has as whole tokens, in its order, each once.

    Parts of a longer word or id do not count: neither `sec_1` in `sec_11`, nor `a` in `a-b` or `a/b`.
    """
    places = {name: place for place, name in enumerate(names)}
    longest_first = "|".join(re.escape(name) for name in sorted(places, key=len, reverse=True))
    token = rf"(?<!\w)(?<!\w[-./:])(?:{longest_first})(?!\w|[-./:]\w)"
    return list(dict.fromkeys(places[match] for match in re.findall(token, answer))) if names else []
