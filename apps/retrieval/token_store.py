"""Token vectors of texts, kept on this machine.

One file for each text, named by the text's hash in a folder of the model, its revision and the kind of text: its token
ids as int32, then its vectors as float16, row by row. Whoever reads a file finds it in the page cache that processes
share; mapping so small a file would cost more than copying it. A text's vectors, once kept, are the same bits for all
who read them on this machine; they are made again, and may differ in their last bits, where they have gone.
"""

import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from django.conf import settings

from apps.retrieval.encoders import BATCH, Kind, TokenEncoder, TokenVectors
from apps.retrieval.fingerprints import fingerprint, text_hash

SLACK = 16  # sizes are summed again after a 16th of the bound was written, and that much room is made at once
FRESH_SECONDS = 86_400  # a file's time of use is right to a day


class TokenStore:
    """The token vectors of one model, revision and kind of text."""

    written = 0  # by this process, in all folders, since sizes were last summed
    room: int | None = None  # what there was then

    def __init__(self, encoder: TokenEncoder, kind: Kind) -> None:
        self.encoder = encoder
        self.kind = kind
        self.folder = tokens_folder(encoder.model_name, encoder.revision, kind)

    def tokens(self, texts: Sequence[str], *, on_part: Callable[[], None] = lambda: None) -> list[TokenVectors]:
        """Return the token vectors of texts as they are kept, encoded first where they are not.

        `on_part` is called after every few texts that are encoded, and may raise.
        """
        keys = [text_hash(text) for text in texts]
        by_key = dict(zip(keys, texts, strict=True))
        known = {key: found for key in by_key if (found := self.read(key))}
        missing = sorted(by_key.keys() - known.keys(), key=lambda key: -len(by_key[key]))
        for start in range(0, len(missing), BATCH):
            part = missing[start : start + BATCH]
            _, made = self.encoder.embed_tokens([by_key[key] for key in part], kind=self.kind)
            self.keep(part, made, make_room=True)
            known |= {key: self.read(key) or one for key, one in zip(part, made, strict=True)}
            on_part()
        return [known[key] for key in keys]

    def missing(self, texts: Sequence[str]) -> list[str]:
        """Return the texts whose token vectors are not kept."""
        return [text for text in texts if not self._file(text_hash(text)).exists()]

    def read(self, key: str) -> TokenVectors | None:
        file = self._file(key)
        try:
            data = file.read_bytes()
            if file.stat().st_mtime < time.time() - FRESH_SECONDS:
                os.utime(file)
        except FileNotFoundError:
            return None
        dimension = self.encoder.token_dimension
        count = len(data) // (4 + 2 * dimension)
        return TokenVectors(
            np.frombuffer(data, "<i4", count), np.frombuffer(data, "<f2", offset=4 * count).reshape(count, dimension)
        )

    def keep(self, keys: Sequence[str], tokens: Sequence[TokenVectors], *, make_room: bool) -> bool:
        """Keep the token vectors of texts by their hashes; what is kept already stays as it is. Tell whether all are.

        Where BENCHBENCH_TOKEN_BYTES is reached, the texts longest unused go to make room, or the rest is not kept.
        """
        for key, one in zip(keys, tokens, strict=True):
            size = 4 * len(one.ids) + one.vectors.nbytes
            if not _has_room(size, make_room=make_room):
                return False
            file = self._file(key)
            file.parent.mkdir(parents=True, exist_ok=True)
            unfinished = file.with_suffix(f".{os.getpid()}.part")
            unfinished.write_bytes(one.ids.astype("<i4").tobytes() + one.vectors.astype("<f2").tobytes())
            try:
                os.link(unfinished, file)  # unlike renaming, leaves what another process has kept meanwhile
            except FileExistsError:
                continue
            finally:
                unfinished.unlink()
            TokenStore.written += size
        return True

    def _file(self, key: str) -> Path:
        return self.folder / key[:2] / key


def tokens_folder(encoder: str, revision: str, kind: str) -> Path:
    return _root() / fingerprint(encoder=encoder, revision=revision, kind=kind)[:32]


def forget_tokens(encoder: str, revision: str, kind: str) -> None:
    """Delete what this machine keeps of a model, revision and kind of text."""
    shutil.rmtree(tokens_folder(encoder, revision, kind), ignore_errors=True)
    TokenStore.room = None


def _root() -> Path:
    return Path(settings.BENCHBENCH_VECTOR_DIR) / "tokens"


def _has_room(size: int, *, make_room: bool) -> bool:
    limit = settings.BENCHBENCH_TOKEN_BYTES
    if TokenStore.room is None or TokenStore.written > limit // SLACK or TokenStore.written + size > TokenStore.room:
        TokenStore.room, TokenStore.written = limit - _trim(limit if make_room else None), 0
    return size <= TokenStore.room - TokenStore.written


def _trim(limit: int | None) -> int:
    """Delete the files longest unused until the rest leaves a 16th of `limit` free; return the bytes that are kept."""
    files = []
    for path in _root().rglob("*"):
        try:
            found = path.stat()
        except FileNotFoundError:
            continue
        if path.is_file():
            files.append((found.st_mtime, found.st_size, path))
    kept = sum(size for _, size, _ in files)
    if limit is None or kept <= limit - limit // SLACK:
        return kept
    for _, size, path in sorted(files):
        if kept <= limit - limit // SLACK:
            break
        path.unlink(missing_ok=True)
        kept -= size
    return kept
