"""The table of the fault suite in docs/operations.md, written by `make faults`."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).resolve().parent.parent.parent / "docs" / "operations.md"
BEGIN, END = "<!-- faults: begin, written by `make faults` -->", "<!-- faults: end -->"
HEAD = "| what is broken, and what comes of it | scenarios | longest time to an end |\n|---|---|---|\n"


def write_table(reports: Iterable[Any]) -> None:
    """Write, of each family, the number of scenarios and the longest time from a fault to an end.

    Of all reports those of ends of tests tell them.
    """
    families: dict[str, list[float]] = {}
    for report in reports:
        properties = dict(getattr(report, "user_properties", ()))
        if "family" in properties and report.when == "teardown":
            families.setdefault(properties["family"], []).append(properties["slowest"])
    rows = "".join(
        f"| {family} | {len(seconds)} | {f'{max(seconds):.1f} s' if max(seconds) else ''} |\n"
        for family, seconds in sorted(families.items())
    )
    count = sum(map(len, families.values()))
    table = f"{BEGIN}\n{HEAD}{rows}| **all** | **{count}** | |\n{END}"
    text = DOCUMENT.read_text()
    DOCUMENT.write_text(re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda match: table, text, flags=re.S))
