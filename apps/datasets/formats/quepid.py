"""Reading the ratings of a case of Quepid: a CSV or a snapshot (`benchbench.files.quepid`)."""

from pathlib import Path

from apps.datasets.formats.rated import Ratings
from apps.datasets.records import DatasetError, DatasetRecord
from benchbench.decimals import counted
from benchbench.files.quepid import read_rows, read_snapshot
from benchbench.files.ratings import build_text_key, describe_scale, find_scale, is_number, is_unjudged


def read_ratings(path: Path, *, grade_factor: int = 1) -> DatasetRecord:
    """Return the ratings of a CSV with the columns query, docid and rating, or Query Text, Doc ID and Rating.

    Or of another export of them (`read_rows`). OpenSearch Dashboards imports the first kind too. A query is identified
    by its text. A row without a rating has a query alone; a document in it is counted. Other columns are not read.
    """
    ratings, unrated = Ratings(path, grade_factor), 0
    written = (rating for *_, rating in read_rows(path) if not is_unjudged(rating))
    scale = {} if is_number(first := next(written, "0")) else find_scale([first, *written])
    for location, text, document, rating in read_rows(path):
        key = ratings.add_query(location, build_text_key(text), text=text)
        if not is_unjudged(rating):
            ratings.add_rating(location, key, document, rating, scale)
        unrated += bool(document and is_unjudged(rating))
    if not ratings.queries:
        raise DatasetError(f"{path.name} has a header and no rows: add a row for each rating.", field="queries")
    warnings = [describe_scale(path.name, scale)] if scale else []
    warnings += [f"Left out: {counted(unrated, 'document')} without a rating."] if unrated else []
    return ratings.build("quepid-ratings", warnings=warnings)


def read_snapshot_ratings(path: Path, *, grade_factor: int = 1) -> DatasetRecord:
    """Return the ratings of a snapshot. A query's key is its text, as in the CSV."""
    snapshot, ratings = read_snapshot(path), Ratings(path, grade_factor)
    for number, query in enumerate(snapshot.queries):
        metadata = {"quepid_query_id": query.query_id, "information_need": query.information_need}
        facts = {name: fact for name, fact in metadata.items() if fact}
        ratings.add_query("", query.key, text=query.text, notes=query.notes, metadata=facts)
        for document, rating in query.ratings.items():
            if rating is not None:
                ratings.add_rating(f"{path.name}, queries[{number}],", query.key, document, rating)
    return ratings.build("quepid-snapshot", name=snapshot.name)
