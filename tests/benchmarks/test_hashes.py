"""What identifies rankings on any site."""

import json
from hashlib import sha256

import numpy as np

from apps.benchmarks.measuring.hashes import Written, hash_of_rankings, rankings_hash
from apps.benchmarks.measuring.reading import Stored

NAMES = {1: 'a "quoted" \\ one', 2: "é\n☃", 3: ""}
STORED = [
    Stored('k"1', 7, 1, "", [2, 1, 3], [0.5, 0.25, 1 / 3]),
    Stored("é", 8, 2, "The query took too long.", [], []),
    Stored("z", 9, 1, "", [], []),
]


def test_rankings_are_hashed_as_json_and_the_bytes_of_their_scores() -> None:
    """Manifests hold such hashes: how they are computed may change, and they may not."""
    digest = sha256()
    for one in STORED:
        ids = None if one.error else [NAMES[document] for document in one.document_ids]
        digest.update(json.dumps([one.key, one.repetition, ids]).encode() + b"\n")
        digest.update(np.array(one.scores, "<f8").tobytes())
    assert rankings_hash(STORED, Written(NAMES)) == digest.hexdigest()
    named = [(one.key, one.repetition, [NAMES[pk] for pk in one.document_ids], one.scores) for one in STORED[::2]]
    assert hash_of_rankings(named) == rankings_hash(STORED[::2], Written(NAMES))
