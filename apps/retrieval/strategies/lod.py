"""Level of detail: documents, then sections, then chunks, chosen by embeddings alone or by a language model."""

import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from apps.collections.records import DocumentRecord
from apps.retrieval.llms.clients import Reply, has_text
from apps.retrieval.strategies.base import (
    Answer,
    Mask,
    Parameters,
    Piece,
    RetrievalStrategy,
    SearchQuery,
    View,
    stack_vectors,
)
from apps.retrieval.strategies.flat import cut_windows
from benchbench.ir.chunking import find_first_sentences
from benchbench.ir.records import Calls, Positions, ScoredList

CHUNKS, SECTIONS, DOCUMENTS = range(3)


class LODEmbedStrategy(RetrievalStrategy):
    """Level of detail by embeddings. Chunks are those of `flat` with `sections: true`, without the title.

    Above them, a section is represented by its heading and first sentences, a document by its title and summary. A
    query is compared with all documents, then with the sections of the best `doc_top_k`, then with the chunks of the
    best `section_top_k` of those. This counts as three encodings of the query, as its authors count.
    """

    def cut_chunks(self, document: DocumentRecord, parameters: Parameters) -> list[Piece]:
        return cut_windows(document, parameters)

    def add_levels(self, document: DocumentRecord, chunks: list[Piece]) -> list[Piece]:
        if not chunks:
            return []
        by_section: dict[int | None, list[int]] = {}
        for index, chunk in enumerate(chunks):
            by_section.setdefault(chunk.section, []).append(index)
        sections = [build_section(document, number, chunks, indices) for number, indices in by_section.items()]
        text = f"{document.title} {document.summary}".strip()
        document_piece = Piece(text, 0, len(document.text), DOCUMENTS, children=tuple(range(len(sections))))
        return [*chunks, *sections, document_piece]

    def search(self, queries: Sequence[SearchQuery], view: View, depth: int, parameters: Parameters) -> list[Answer]:
        vectors = stack_vectors(queries)
        documents = view.find_nearest(vectors, parameters["doc_top_k"], mask_level(view, queries, DOCUMENTS))
        sections = view.find_nearest(vectors, parameters["section_top_k"], mask_children(view, queries, documents))
        chunks = view.find_nearest(vectors, depth, mask_children(view, queries, sections))
        return [Answer(ranked, Calls(embed=3)) for ranked in chunks]


def build_section(document: DocumentRecord, number: int | None, leaves: Sequence[Piece], indices: list[int]) -> Piece:
    """Return the summary piece of the chunks at `indices`, which belong to one section or to none."""
    start, end = leaves[indices[0]].start, max(leaves[index].end for index in indices)
    heading = document.title if number is None else document.sections[number].heading
    body = re.sub(rf"\A\s*(?:#+\s*)?{re.escape(heading)}\s*(?:#+\s*)?", "", document.text[start:end])
    text = f"{heading} {find_first_sentences(body)}".strip() or leaves[indices[0]].text
    return Piece(text, start, end, SECTIONS, number, tuple(indices))


def mask_level(view: View, queries: Sequence[SearchQuery], level: int) -> list[Mask]:
    """Return the admitted positions of a level for each query. Queries with the same filter share a mask."""
    is_on_level: Mask = view.levels == level
    masks = {id(query.mask): is_on_level if query.mask is None else is_on_level & query.mask for query in queries}
    return [masks[id(query.mask)] for query in queries]


def mask_children(view: View, queries: Sequence[SearchQuery], lists: Sequence["ScoredList | _Pick"]) -> list[Mask]:
    """Return for each query the mask of the admitted children of its found positions."""
    masks = []
    for query, hits in zip(queries, lists, strict=True):
        mask = np.zeros(len(view.levels), bool)
        mask[view.find_children(hits.ids)] = True
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

    def search(self, queries: Sequence[SearchQuery], view: View, depth: int, parameters: Parameters) -> list[Answer]:
        return [self._answer(query, view, depth, parameters) for query in queries]

    def _answer(self, query: SearchQuery, view: View, depth: int, parameters: Parameters) -> Answer:
        started = time.perf_counter()
        (admitted,) = mask_level(view, [query], DOCUMENTS)
        documents = _pick(query, view, admitted, "documents", parameters["doc_top_k"])
        (section_mask,) = mask_children(view, [query], [documents])
        sections = _pick(query, view, section_mask, "sections", parameters["section_top_k"])
        (ranked,) = view.find_nearest(query.vector[None], depth, mask_children(view, [query], [sections]))
        replies = [reply for reply in (documents.reply, sections.reply) if reply]
        # For a cached answer, count the time that the model took, not that of the look-up.
        ms = (time.perf_counter() - started) * 1000 + sum(reply.ms - reply.waited_ms for reply in replies)
        cached = sum(reply.is_cached for reply in replies)
        return Answer(ranked, Calls(1, len(replies), cached, documents.is_fallback or sections.is_fallback), ms)


def _pick(query: SearchQuery, view: View, mask: Mask, noun: str, limit: int) -> _Pick:
    """Ask the model to choose at most `limit` of the positions that `mask` admits."""
    (near,) = view.find_nearest(query.vector[None], OFFERED, [mask])
    if not len(near):
        return _Pick(near.ids, None, False)
    offered = np.sort(near.ids)
    passages = view.load_passages(offered)
    names = build_labels([(piece.document, piece.section) for piece in passages], with_sections=noun == "sections")
    lines = "\n".join(f"- {name}: {' '.join(piece.text.split())}" for name, piece in zip(names, passages, strict=True))
    reply = view.ask(PROMPT.format(what=noun, most=limit, question=query.text, offered=lines), has_text)
    chosen = parse_picks(reply.text, names)[:limit]
    return _Pick(offered[chosen] if chosen else near.ids[:limit], reply, not chosen)


def build_labels(ids: Sequence[tuple[str, str]], *, with_sections: bool) -> list[str]:
    """Return distinct names for the offered documents or sections.

    A section's name is its id, preceded by its document's if two are equal. Text outside sections is named as its
    document.
    """
    names = [(section if with_sections else "") or document for document, section in ids]
    counts = Counter(names)
    return [name if counts[name] == 1 else f"{document}/{name}" for name, (document, _) in zip(names, ids, strict=True)]


def parse_picks(answer: str, names: Sequence[str]) -> list[int]:
    """Return the indices of the `names` that an answer has as whole tokens, in its order, each once.

    Parts of a longer word or id do not count: neither `sec_1` in `sec_11`, nor `a` in `a-b` or `a/b`.
    """
    indices = {name: index for index, name in enumerate(names)}
    longest_first = "|".join(re.escape(name) for name in sorted(indices, key=len, reverse=True))
    token = rf"(?<!\w)(?<!\w[-./:])(?:{longest_first})(?!\w|[-./:]\w)"
    return list(dict.fromkeys(indices[match] for match in re.findall(token, answer))) if names else []
