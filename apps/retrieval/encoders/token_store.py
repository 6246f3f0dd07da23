"""Token vectors of texts, stored on this machine.

Each model, revision and kind of text has a folder of packs (benchbench.local_files.packs). The record of a text has its
token ids as int32, then its vectors as float16, row by row. Processes share the records through the page cache. Stored
vectors are the same bits for all processes of this machine. Lost or damaged ones are computed again, and may then
differ in their last bits.
"""

import shutil
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import numpy as np
from django.conf import settings

from apps.retrieval import process
from apps.retrieval.encoders import base
from apps.retrieval.encoders.base import EncoderError, Kind, TokenEncoder, TokenVectors, build_vector_error
from apps.retrieval.fingerprints import fingerprint
from benchbench.decimals import counted
from benchbench.ir.ranking import find_flaws, find_shape_flaw
from benchbench.local_files.packs import OVERHEAD, Packs, count_packed_bytes, trim_packs, writing

SLACK = 16  # a pack has at most a 16th of the limit, and trimming frees as much


class TokenStore:
    """The token vectors of one model, revision and kind of text."""

    def __init__(self, encoder: TokenEncoder, kind: Kind) -> None:
        self.encoder = encoder
        self.kind = kind
        self.folder = locate_tokens(encoder.model_name, encoder.revision, kind)
        self._packs = _packs_in(self.folder)

    def load_tokens(self, texts: Sequence[str], *, on_part: Callable[[], None] = lambda: None) -> list[TokenVectors]:
        """Return the stored token vectors of texts, encoding the missing ones first.

        `on_part` is called after each batch of encoded texts and may raise. Raises EncoderError.
        """
        tokens_by_text = self.read(texts)
        missing = sorted(set(texts) - tokens_by_text.keys(), key=lambda text: (-len(text), text))
        at_once = base.scale_call(self.encoder, base.BATCH)
        for start in range(0, len(missing), at_once):
            batch_texts = missing[start : start + at_once]
            _, encoded = self.encoder.embed_tokens(batch_texts, kind=self.kind)
            self.store_tokens(batch_texts, encoded, make_room=True)
            tokens_by_text |= dict(zip(batch_texts, encoded, strict=True)) | self.read(batch_texts)
            on_part()
        return [tokens_by_text[text] for text in texts]

    def find_missing(self, texts: Sequence[str]) -> list[str]:
        """Return the texts without stored token vectors."""
        stored_keys = self._packs.find_keys([self._build_key(text) for text in texts])
        return [text for text in texts if self._build_key(text) not in stored_keys]

    def read(self, texts: Sequence[str]) -> dict[str, TokenVectors]:
        """Return the stored token vectors, by text."""
        by_key = {self._build_key(text): text for text in texts}
        return {by_key[key]: self._unpack(content) for key, content in self._packs.read(list(by_key)).items()}

    def store_tokens(self, texts: Sequence[str], tokens: Sequence[TokenVectors], *, make_room: bool) -> bool:
        """Store the token vectors of texts, unless stored already. Return whether all are stored.

        At the limit of BENCHBENCH_TOKEN_BYTES, delete the least recently used packs with `make_room`, or skip the rest.
        Raises EncoderError for invalid token vectors.
        """
        self._check(texts, tokens)
        limit, root = settings.BENCHBENCH_TOKEN_BYTES, _locate_root()
        records, has_room = dict(zip(map(self._build_key, texts), tokens, strict=True)), True
        with writing(root):
            existing, used_bytes = self._packs.read(list(records)), count_packed_bytes(root)
            for key in [key for key in records if key not in existing]:
                content = records[key].ids.astype("<i4").tobytes() + records[key].vectors.astype("<f2").tobytes()
                size = OVERHEAD + len(content)
                if used_bytes + size > limit and make_room:
                    used_bytes = trim_packs(root, limit - limit // SLACK)
                if not (has_room := used_bytes + size <= limit):
                    break
                self._packs.add(key, content, max_bytes=limit // SLACK)
                used_bytes += size
        if self.kind == "document":  # not for queries: it would count in their time
            self._packs.sync()
        return has_room

    def _build_key(self, text: str) -> bytes:
        """Return the key of a text's record, unique across models, kinds and layouts."""
        return sha256(f"{self.folder.name} i4 f2 {self.encoder.token_dimension} {text}".encode()).digest()

    def _unpack(self, content: memoryview) -> TokenVectors:
        dimension = self.encoder.token_dimension
        count = len(content) // (4 + 2 * dimension)
        return TokenVectors(
            np.frombuffer(content, "<i4", count),
            np.frombuffer(content, "<f2", offset=4 * count).reshape(count, dimension),
        )

    def _check(self, texts: Sequence[str], tokens: Sequence[TokenVectors]) -> None:
        if len(tokens) != len(texts):
            raise EncoderError(
                f"{self.encoder.model_name} read {counted(len(texts), 'text')} but returned tokens of {len(tokens)}."
            )
        for text, vectors in zip(texts, tokens, strict=True):
            name = f"a token of the {self.kind} {text[:80]!r}"
            if wrong := find_shape_flaw(vectors.vectors, len(vectors.ids), self.encoder.token_dimension):
                raise build_vector_error(self.encoder.model_name, name, f"of the shape {wrong}")
            for flaw in find_flaws(vectors.vectors).values():
                raise build_vector_error(self.encoder.model_name, name, flaw)


def locate_tokens(encoder: str, revision: str, kind: str) -> Path:
    return _locate_root() / fingerprint(encoder=encoder, revision=revision, kind=kind)[:32]


def delete_tokens(encoder: str, revision: str, kind: str) -> None:
    """Delete this machine's token vectors of a model, revision and kind of text."""
    with writing(_locate_root()):
        shutil.rmtree(locate_tokens(encoder, revision, kind), ignore_errors=True)


_packs_in = lru_cache(Packs)  # keeps their index in this process
process.add(_packs_in.cache_clear)


def _locate_root() -> Path:
    return Path(settings.BENCHBENCH_VECTOR_DIR) / "packs"
