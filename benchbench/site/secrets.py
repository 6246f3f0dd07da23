"""Secrets of a Compose site, made at its first start: `python -m benchbench.site.secrets FOLDER`.

Each is a file of the user who runs this. A file that exists stays, because the database was made with its password and
sessions are signed by its key.
"""

import secrets
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchbench.local_files.placing import write_file, write_pieces


def make_secrets(folder: Path) -> None:
    """Write a file for each missing secret of the site, its database and its Redis."""
    for name in ("secret_key", "postgres_password", "redis_password"):
        _write_missing(folder / name, secrets.token_urlsafe(50))
    for name, url in _yield_urls(folder):
        _write_missing(folder / name, url)


def _yield_urls(folder: Path) -> Iterator[tuple[str, str]]:
    yield (
        "database_url",
        f"postgresql://benchbench:{(folder / 'postgres_password').read_text(encoding='ascii')}@db/benchbench",
    )
    yield "redis_url", f"redis://:{(folder / 'redis_password').read_text(encoding='ascii')}@redis/0"


def _write_missing(path: Path, text: str) -> None:
    if not path.exists():
        write_file(partial(write_pieces, [text]), path, mode=0o600)


if __name__ == "__main__":
    make_secrets(Path(sys.argv[1]))
