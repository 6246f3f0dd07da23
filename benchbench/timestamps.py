"""Time stamps and code revisions of results."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path


def timestamp(when: datetime) -> str:
    """Return an aware moment as ISO 8601 in UTC, "2026-01-19T12:00:00Z"; with microseconds if it has any."""
    return when.astimezone(UTC).isoformat().removesuffix("+00:00") + "Z"


def read_git_sha(folder: Path) -> str | None:
    """Return the commit that is checked out in a folder; None without a commit or git."""
    command = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    try:
        result = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return result.stdout.strip() or None
