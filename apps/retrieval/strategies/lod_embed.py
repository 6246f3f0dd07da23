"""Level of detail by embeddings alone: documents, then sections, then chunks, each level within what the last found."""

import re
from collections.abc import Iterable, Sequence

import numpy as np

from apps.collections.records import DocumentRecord
from apps.retrieval.strategies.base import (
    Answer,
    Asked,
    Mask,
    Parameters,
    Piece,
    RetrievalStrategy,
    View,
    vectors_of,
)
from apps.retrieval.strategies.flat import windows
from benchbench.ir.chunking import first_sentences
from benchbench.ir.records import Calls, ScoredList

CHUNKS, SECTIONS, DOCUMENTS = range(3)


class LODEmbedStrategy(RetrievalStrategy):
    """Chunks are cut section by section, as `flat` cuts them with `sections: true`, without the title.

    A section stands above them by its heading and its first sentences, a document by its title and its summary. A query
    is compared with all documents, then with the sections of the best `doc_top_k`, then with the chunks of the best
    `section_top_k` of those: three encodings of the query, as its authors count.
    """

    def chunks(self, document: DocumentRecord, parameters: Parameters) -> Iterable[Piece]:
        spans = [(section.start, section.end) for section in document.sections]
        leaves = windows(document, spans, size=parameters["size"], overlap=parameters["overlap"])
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
    """The piece that stands for the chunks at `places`, those of one section or of none."""
    start, end = leaves[places[0]].start, leaves[places[-1]].end
    heading = document.title if number is None else document.sections[number].heading
    body = re.sub(rf"\A\s*#*\s*{re.escape(heading)}\s*#*\s*", "", document.text[start:end])
    text = f"{heading} {first_sentences(body)}".strip() or leaves[places[0]].text
    return Piece(text, start, end, SECTIONS, number, tuple(places))


def on_level(view: View, queries: Sequence[Asked], level: int) -> list[Mask]:
    """The positions of a level that each query admits; one mask for queries that are filtered alike."""
    of_level: Mask = view.levels == level
    masks = {id(query.mask): of_level if query.mask is None else of_level & query.mask for query in queries}
    return [masks[id(query.mask)] for query in queries]


def below(view: View, queries: Sequence[Asked], lists: Sequence[ScoredList]) -> list[Mask]:
    """The children of what was found for each query, those that it admits."""
    masks = []
    for query, ranked in zip(queries, lists, strict=True):
        mask = np.zeros(len(view.levels), bool)
        mask[view.children_of(ranked.ids)] = True
        masks.append(mask if query.mask is None else mask & query.mask)
    return masks
