"""Moments as text, in the one form of answers, events and files."""

from datetime import UTC, datetime


def timestamp(when: datetime) -> str:
    """Return an aware moment as ISO 8601 in UTC, "2026-01-19T12:00:00Z"; with microseconds where it has any."""
    return when.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"
