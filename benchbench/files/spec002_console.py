"""The console of SPEC-002, from what the baseline file holds: a line for each query as it ends, then the totals."""

from collections.abc import Mapping
from typing import Any

from benchbench.files.module_queries import versions_of
from benchbench.printable import on_one_line

RULE = "=" * 80
BLOCKS = 24
LABELS = {"precision@3": "Precision@3:", "precision@5": "Precision@5:", "recall@10": "Recall@10:"}
MEASURES = {"P@3": "precision@3", "P@5": "precision@5", "R@10": "recall@10", "MRR": "mrr"}
DIFFICULTIES = ("easy", "medium", "hard")


def opening(title: str, *, source: str, queries: int) -> list[str]:
    """What stands above the queries: whose run this is, and where they come from."""
    return [
        RULE,
        on_one_line(title),
        RULE,
        "",
        f"Loading queries from: {on_one_line(source)}",
        f"✓ Loaded {queries:,} {_plural(queries, 'query', 'queries')} successfully",
        "",
        "Starting benchmark execution...",
        "",
    ]


def query_lines(detail: Mapping[str, Any], place: int, of: int, *, noun: str = "module") -> list[str]:
    """The lines of one of the file's `detailed_results`, the one at `place` of so many. `noun` is what is expected.

    A query that failed has its reason where the others have their time and values: it has neither.
    """
    number = f"[{place}/{of}] "
    facts = {
        "Version": " or ".join(versions_of(detail["version"] or [])),
        "Category": detail["category"],
        "Difficulty": detail["difficulty"],
    }
    expected = len(detail["expected_modules"])
    lines = [
        " | ".join(f"{name}: {on_one_line(str(value))}" for name, value in facts.items() if value),
        f"Expected: {expected} {_plural(expected, noun, noun + 's')}",
    ]
    if detail["error"] is not None:
        lines.append(f"✗ Failed: {on_one_line(detail['error'])}")
    else:
        took = detail["execution_time_ms"]
        lines.append("✓ Executed" if took is None else f"✓ Executed in {took:.0f}ms{_shared(detail)}")
        metrics = detail["metrics"]
        values = [f"{short}={metrics[name]:.3f}" for short, name in MEASURES.items()]
        lines.append("Metrics: " + " | ".join(values))
    indent = " " * len(number)
    return [f'{number}Query: "{on_one_line(detail["query"])}"', *(indent + line for line in lines if line), ""]


def closing(content: Mapping[str, Any], *, written_to: str = "") -> list[str]:
    """The totals of a baseline file: time, means with bars, means by difficulty. Queries that failed are in no mean."""
    about, means = content["metadata"], content["aggregate_metrics"]
    seconds, failed = about["execution_time_seconds"], about["failed_queries"]
    lines = [RULE, "BENCHMARK COMPLETED", RULE, ""]
    lines += [] if seconds is None else [f"Execution Time: {seconds:,.1f} seconds{_shared(about)}"]
    lines.append(f"Total Queries: {about['total_queries']:,}")
    lines += [f"Failed Queries: {failed:,}, in no mean"] if failed else []
    lines += _cut_short(about["limit"])
    lines += ["", "AGGREGATE METRICS:"]
    lines += [
        f"  {label:<13}{_percent(means[name]):>6}  {_bar(means[name])}".rstrip() for name, label in LABELS.items()
    ]
    mrr = means["mrr"]
    lines += [f"  {'Mean MRR:':<13}{'–' if mrr is None else format(mrr, '.3f'):>6}", ""]
    lines += _by_difficulty(content["per_difficulty"])
    lines += [f"Results saved to: {written_to}", ""] if written_to else []
    return [*lines, RULE]


def _shared(timed: Mapping[str, Any]) -> str:
    return f" ({timed['execution']})" if "execution" in timed else ""


def _cut_short(limit: int) -> list[str]:
    """Say how many results of a query were looked at, where a measure asks for more."""
    greatest = max(int(name.partition("@")[2]) for name in LABELS)
    if limit >= greatest:
        return []
    return [f"Results of a Query: {limit}, so that measures at a greater cutoff, up to {greatest}, see no more"]


def _by_difficulty(groups: Mapping[str, Mapping[str, Any]]) -> list[str]:
    groups = {name: group for name, group in groups.items() if group["count"]}
    if not groups:
        return []
    names = [name for name in DIFFICULTIES if name in groups] + [name for name in groups if name not in DIFFICULTIES]
    rows = [(on_one_line(name).capitalize(), f"({groups[name]['count']})", groups[name]) for name in names]
    widths = max(len(name) for name, _, _ in rows), max(len(count) for _, count, _ in rows)
    return [
        "BY DIFFICULTY:",
        *(
            f"  {name:<{widths[0]}} {count:>{widths[1]}}:  "
            f"P@3={_percent(of['precision@3'])} | P@5={_percent(of['precision@5'])}"
            for name, count, of in rows
        ),
        "",
    ]


def _bar(share: float | None) -> str:
    if share is None:
        return ""
    filled = round(BLOCKS * share)
    return "█" * filled + "░" * (BLOCKS - filled)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def _plural(count: int, singular: str, plural: str) -> str:
    return singular if count == 1 else plural
