"""Fingerprints: hashes of all inputs of derived data."""

import json
from hashlib import sha256


def fingerprint(**values: object) -> str:
    """Return the SHA-256 over named JSON values, independent of the order of names and keys."""
    return sha256(json.dumps(values, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def hash_text(text: str) -> str:
    """Return the SHA-256 of an encoded text: the key of its vector."""
    return sha256(text.encode()).hexdigest()
