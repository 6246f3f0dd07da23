"""The flat strategy: chunks of one level, each query compared with all of them."""

from collections.abc import Sequence

from apps.collections.records import DocumentRecord
from apps.retrieval.strategies.base import (
    FIT,
    Answer,
    Parameters,
    Piece,
    RetrievalStrategy,
    SearchQuery,
    View,
    stack_vectors,
)
from benchbench.ir.chunking import cut_spans, list_segments
from benchbench.ir.records import Calls


class FlatStrategy(RetrievalStrategy):
    """The flat strategy. Without parameters a document is one chunk, `title + " " + text`; it may be empty.

    With `size` and `overlap`, chunks are windows of its text, preceded by the title with `title: true`. With
    `sections: true` no window crosses the edge of a section, and each has its section. With windows, a document whose
    text is blank is one chunk of its title.
    """

    def check(self, parameters: Parameters) -> dict[str, object]:
        has_windows = bool(parameters.keys() - {FIT})
        complete = super().check({"size": None, "overlap": 0, **parameters} if has_windows else parameters)
        names = complete if has_windows else complete.keys() & {FIT}
        return {name: complete[name] for name in names if name != "sections" or complete[name]}

    def cut_chunks(self, document: DocumentRecord, parameters: Parameters) -> list[Piece]:
        title, text = document.title, document.text
        if "size" not in parameters:
            return [Piece(f"{title} {text}".strip(), 0, len(text))]
        prefix = f"{title} " if parameters["title"] else ""
        return cut_windows(document, parameters, prefix=prefix, by_section="sections" in parameters)

    def search(self, queries: Sequence[SearchQuery], view: View, depth: int, parameters: Parameters) -> list[Answer]:
        lists = view.find_nearest(stack_vectors(queries), depth, [query.mask for query in queries])
        return [Answer(ranked, Calls(embed=1)) for ranked in lists]


def cut_windows(
    document: DocumentRecord, parameters: Parameters, *, prefix: str = "", by_section: bool = True
) -> list[Piece]:
    """Return the windows of a document's text, cut at the edges of its sections; its title if the text is blank."""
    title, text, size, overlap = document.title, document.text, parameters["size"], parameters["overlap"]
    sections = [(section.start, section.end) for section in document.sections if by_section]
    pieces = [
        Piece(f"{prefix}{text[first + start : first + end]}".strip(), first + start, first + end, section=section)
        for first, last, section in list_segments(len(text), sections)
        for start, end in cut_spans(text[first:last], size=size, overlap=overlap)
    ]
    if not pieces and title.strip():
        return [Piece(title.strip(), 0, 0)]
    return pieces
