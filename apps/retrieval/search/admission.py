"""The chunks of an index that a filter admits, as a mask and in SQL; PostgreSQL's statistics about shares."""

from functools import cached_property
from typing import LiteralString, NamedTuple

import numpy as np
from django.db import connection
from psycopg import sql

from apps.collections.models import Document
from apps.retrieval.filters import (
    SHARE_KEY,
    Filter,
    bound_places,
    build_condition,
    filter_rows,
    find_place,
    split_share,
)
from apps.retrieval.models import Index
from benchbench.ir.records import Mask, Positions

BITS_OF_ID = 32  # of a mask, whose text is as long as an id's


class Admission:
    """The admission of chunks, whose documents are `document_ids` (n,), by filters."""

    def __init__(self, index: Index, document_ids: Positions) -> None:
        self._documents = Document.objects.filter(collection=index.collection_id)
        self._document_ids = document_ids
        self._shares: dict[float, Mask] = {}

    @property
    def nbytes(self) -> int:
        masks = sum(mask.nbytes for mask in self._shares.values())
        return masks + int(vars(self)["places"].nbytes if "places" in vars(self) else 0)

    @cached_property
    def places(self) -> Positions:
        """Return the place of each chunk's document (n,), by which a share of the documents is admitted."""
        places = {pk: find_place(external_id) for pk, external_id in self._documents.values_list("pk", "external_id")}
        distinct, numbers = np.unique(self._document_ids, return_inverse=True)
        return np.array([places[document] for document in distinct.tolist()], np.int64)[numbers]

    def mask_share(self, share: float) -> Mask:
        """Return the mask (n,) of the chunks whose documents a share admits. Slow on first use."""
        if share not in self._shares:
            self._shares[share] = self.places < bound_places(share)
        return self._shares[share]

    def build_mask(self, filter: Filter) -> Mask | None:
        """Return the mask (n,) of the chunks whose documents a filter admits; None for an empty filter."""
        by_metadata, share = split_share(filter)
        among = None if share is None else self.mask_share(share)
        if not by_metadata:
            return among
        documents = filter_rows(self._documents, by_metadata)
        mask = np.isin(self._document_ids, np.fromiter(documents.values_list("pk", flat=True), np.int64))
        return mask if among is None else mask & among


class Among(NamedTuple):
    """The restriction of a search: `mask` (n,), in SQL the `filter` on metadata, or without it the mask's positions."""

    filter: Filter | None = None
    mask: Mask | None = None

    @property
    def condition(self) -> tuple[sql.Composable, list[object]]:
        if self.filter is None and self.mask is not None:
            condition, admitted = admit_positions(self.mask)
            return sql.SQL(condition).format(position=sql.SQL("id"), admitted=sql.SQL("%s")), [admitted]
        return build_condition(self.filter or {})

    @property
    def needs_enough(self) -> bool:
        """Return whether a search must find enough chunks; with a share, its setting alone decides."""
        return self.mask is not None and SHARE_KEY not in (self.filter or {})


def admit_positions(mask: Mask) -> tuple[LiteralString, list[int] | bytes]:
    """Return an SQL condition on a `{position}`, and what is `{admitted}`: ids, or if they are many, a bit for each.

    A million ids would take seconds to send and plan, for every query.
    """
    if len(positions := np.flatnonzero(mask)) * BITS_OF_ID < len(mask):
        return "{position} = ANY({admitted})", positions.tolist()
    return "get_bit({admitted}, {position}) = 1", np.packbits(mask, bitorder="little").tobytes()


def analyze_places(table: str) -> bool:
    """Collect PostgreSQL's statistics on places, from which it estimates the rows of a share.

    Return whether the table has places: it lacks them if it is older than shares.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = 'place'", [table])
        if not cursor.rowcount:
            return False
        cursor.execute("SELECT FROM pg_stats WHERE tablename = %s AND attname = 'place'", [table])
        if not cursor.rowcount:
            cursor.execute(sql.SQL("ANALYZE {} (place)").format(sql.Identifier(table)))
    return True
