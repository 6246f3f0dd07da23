"""The files that Flowbaby's own command writes: results.json, results.md and summary.json."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchbench.errors import BenchbenchError
from benchbench.files.flowbaby.reading import Dataset
from benchbench.files.flowbaby.results import Provenance, QueryFigures, markdown, results, summary, written
from benchbench.ir.profiles import Profile
from benchbench.scoring.measuring import Scores
from benchbench.timestamps import timestamp


class OutputError(BenchbenchError):
    """A file that cannot be written."""

    code = "output"


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Which files are wanted, and where."""

    results: Path | None = None
    markdown: Path | None = None
    summary: Path | None = None

    def __bool__(self) -> bool:
        return bool(self.results or self.markdown or self.summary)


def results_of(dataset: Dataset, scores: Scores, *, profile: Profile, cutoffs: list[int]) -> dict[str, Any]:
    """The content of results.json for the scores of the dataset's judged queries."""
    slices = {topic.key: topic.slices for topic in dataset.topics}
    names = [measure.wire for measure in scores.measures]
    queries = [
        QueryFigures(key, slices[key], len(dataset.qrels[key]), dict(zip(names, column.tolist(), strict=True)))
        for key, column in zip(scores.queries, scores.values.T, strict=True)
    ]
    judged = [len(dataset.qrels.get(key, {})) for key in slices]
    return results(queries, profile=profile, cutoffs=cutoffs, judged=judged)


def write(targets: Targets, content: Mapping[str, Any], about: Provenance) -> None:
    """Write the wanted files, with the folders they lie in. Raises OutputError."""
    files = [
        (targets.results, written(content)),
        (targets.markdown, markdown(content)),
        (targets.summary, written(summary(content, about))),
    ]
    for path, text in files:
        if path is None:
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise OutputError(f"{path} cannot be written: {error.strerror or error}.") from None


def provenance(dataset: Dataset, run_id: str, **facts: Any) -> Provenance:
    """What summary.json says of a run over a dataset, as of now."""
    return Provenance(
        run_id=run_id,
        timestamp=timestamp(datetime.now(UTC)),
        dataset_id=dataset.metadata.dataset_id,
        dataset_version=dataset.metadata.version,
        canonicalization_version=dataset.metadata.canonicalization_version,
        **facts,
    )


def git_sha(folder: Path | None = None) -> str | None:
    """Return the commit that is checked out in a folder, by default the current one; None where git has none."""
    command = ["git", "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None
