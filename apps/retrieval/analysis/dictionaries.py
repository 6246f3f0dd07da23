"""Segmentation by the dictionaries of optional packages, each an extra by the name that the option `words` has."""

from apps.retrieval.analysis.segmenting import Split


def build_sudachipy() -> Split:
    """Return the segmenter of Japanese, with the shortest words, which suit search; each in its dictionary form."""
    from sudachipy import Dictionary, SplitMode

    tokenizer = Dictionary().tokenizer(mode=SplitMode.A)
    limit = 10_000  # characters; the tokenizer refuses texts of more than 49,149 bytes

    def split(text: str) -> list[str]:
        pieces = (text[start : start + limit] for start in range(0, len(text), limit))
        return [word.dictionary_form() for piece in pieces for word in tokenizer.tokenize(piece)]

    return split


def build_rjieba() -> Split:
    """Return the segmenter of Chinese, which also gives the words within long words."""
    import rjieba

    return lambda text: list(rjieba.cut_for_search(text))


def build_kiwipiepy() -> Split:
    """Return the segmenter of Korean, which divides words into morphemes and leaves out particles and endings."""
    from kiwipiepy import Kiwi

    kiwi = Kiwi(num_workers=1)
    return lambda text: [token.form for token in kiwi.tokenize(text) if token.tag[0] not in "JE"]


def build_pythainlp() -> Split:
    """Return the segmenter of Thai."""
    from pythainlp.tokenize import word_tokenize

    return lambda text: list(word_tokenize(text, engine="newmm", keep_whitespace=False))
