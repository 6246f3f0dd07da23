"""The table of the fault suite in docs/operations.md, written by `make faults`."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).resolve().parent.parent.parent / "docs" / "operations.md"
BEGIN, END = "<!-- faults: begin, written by `make faults` -->", "<!-- faults: end -->"
HEAD = "| fault, and the result | scenarios | ends within | longest |\n|---|---|---|---|\n"


def write_table(reports: Iterable[Any]) -> None:
    """Write, of each family, the number of scenarios, and the stated and the longest time from a fault to an end.

    Of all reports those of ends of tests report them.
    """
    families: dict[tuple[str, float], list[float]] = {}
    for report in reports:
        properties = dict(getattr(report, "user_properties", ()))
        if "family" in properties and report.when == "teardown":
            family, options, slowest = properties["family"]
            families.setdefault((family, options), []).append(slowest)
    rows = "".join(
        f"| {family} | {len(seconds)} | {declared:.0f} s | {f'{max(seconds):.1f} s' if max(seconds) else ''} |\n"
        for (family, declared), seconds in sorted(families.items())
    )
    count = sum(map(len, families.values()))
    table = f"{BEGIN}\n{HEAD}{rows}| **all** | **{count}** | | |\n{END}"
    text = DOCUMENT.read_text()
    DOCUMENT.write_text(re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda match: table, text, flags=re.S))
