"""Fingerprints: one hash of everything that decides the content of a derived thing."""

import json
from hashlib import sha256
from typing import Any


def fingerprint(**parts: Any) -> str:
    """Return the SHA-256 over named JSON values, whatever order they and their keys come in."""
    return sha256(json.dumps(parts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def text_hash(text: str) -> str:
    """Return the SHA-256 of a text that is encoded: the key of its vector."""
    return sha256(text.encode()).hexdigest()
