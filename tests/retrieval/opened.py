"""Indexes opened and searched."""

import numpy as np

from apps.retrieval.search import vectors as tables
from apps.retrieval.search.open_indexes import open_index

KEYWORDS = "keyword:apple,pear,plum"


def dense(opened, queries, depth, filters=None):
    """What the strategy of an open index finds, without its calls."""
    return [answer.ranked for answer in opened.find_answers(queries, depth, filters)]


def stored_vectors(index):
    return np.concatenate([rows for _, rows in tables.read_table(index.vector_table, index.dimension)])


def search_beta(index, depth):
    opened = open_index(index)
    return opened.find_answers(opened.encode(["beta"]), depth, texts=["beta"])[0]


def hits(index, answer):
    rows = index.chunk_set.leaves.values_list("position", "document__external_id", "section__section_id")
    recognised = {position: remaining for position, *remaining in rows}
    pairs = zip(answer.ranked.ids.tolist(), answer.ranked.scores.tolist(), strict=True)
    return [(*recognised[position], round(score, 4)) for position, score in pairs]
