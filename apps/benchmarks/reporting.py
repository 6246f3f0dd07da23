"""Texts of a preview, and the warnings that runs share."""

from collections.abc import Sequence

from django.template.defaultfilters import filesizeformat

from apps.benchmarks.defining.previewing import Preview
from apps.benchmarks.models import Run


def preview_text(planned: Preview) -> str:
    """Return a preview as lines of text: the distinct work, what it searches, the time and memory that it takes."""
    seconds = f"About {planned.estimate_seconds:,.1f} s with one worker"
    memory = f"{filesizeformat(planned.resident_bytes)} of its memory for the index {', '.join(planned.indexes)}."
    lines = [planned.explanation, f"{seconds}, and {memory}"]
    if planned.builds:
        lines.append("Missing parts are built first, which takes additional time:")
        lines += [f"{'':4}{build}" for build in planned.builds]
    return "\n".join([*lines, *planned.warnings])


def shared_warnings(runs: Sequence[Run]) -> list[str]:
    """Return the warnings that each of several completed runs has, which a leaderboard tells once, for all of them."""
    completed = [run for run in runs if run.status == Run.Status.COMPLETED]
    if len(completed) < 2:
        return []
    return [warning for warning in completed[0].warnings if all(warning in run.warnings for run in completed)]
