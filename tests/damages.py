"""Valid files, damaged where their structure is, for tests that a reader raises a sentence or reads something.

The suite damages few files, the same each time. `make fuzz` goes on for longer, with other damages each time, over the
tests with the marker `fuzz`: BENCHBENCH_FUZZ_EXAMPLES says how many files each reader gets. What it finds becomes a
case of its own in the tests of the reader. The files lie under the temporary directory of a test.
"""

import copy
import os
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Model
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from benchbench.errors import BenchbenchError
from tests.files.samples import write_file

IS_LONG = "BENCHBENCH_FUZZ_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("BENCHBENCH_FUZZ_EXAMPLES", "200"))
IMPORTS = max(EXAMPLES // 20, 20)  # of the files that a reader gets, those that are imported too

ODD_BYTES = [
    *(
        b"",
        b"\0",
        b"\xff",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        "é\u2028\u00a0".encode(),
        b"\t",
        b"\n",
        b"\r",
        b"\x0c",
        b" ",
    ),
    *(
        b"nan",
        b"-inf",
        b"1e999",
        b"1_0",
        b"0x1p3",
        b"-1",
        b"9" * 400,
        b'"',
        b"{",
        b"[" * 3000,
        b"\\ud800",
        b"<top>",
        b"</",
        b"&#x110000;",
    ),
]
ODD_VALUES: list[Any] = [
    *(None, True, 0, -1, 2.5, 10**400, float("nan"), float("inf"), "", " ", "\0", "\ud800", "q1", "x" * 5000),
    *([], {}, [[]], {"a": {}}, [None], {"": 1}),
]
KINDS = ("drop", "repeat", "replace", "add", "cut")
Damage = tuple[str, int, int]
SEEDS = st.integers(0, 2**32 - 1)
FILES = 10  # of each drawn number: hypothesis takes longer to draw a file's damages than a reader to read it


def drawn(examples: int, **more: Any) -> settings:
    """Return the settings of a test whose inputs hypothesis draws: the same in the suite, other ones in `make fuzz`."""
    complete: dict[str, Any] = {
        "derandomize": not IS_LONG,
        "database": None,
        "suppress_health_check": list(HealthCheck),
    }
    return settings(max_examples=examples, **complete, **more)


def damages_of(seed: int) -> Iterator[list[Damage]]:
    """For each file, up to four damages: a kind, and two numbers that choose where and with what."""
    drawn = random.Random(seed)
    for _ in range(FILES):
        yield [(drawn.choice(KINDS), drawn.randrange(1000), drawn.randrange(1000)) for _ in range(drawn.randint(1, 4))]


def damaged_bytes(content: bytes, damages: list[Damage]) -> bytes:
    """Words and what is between them dropped, repeated, replaced, followed by others; or the rest cut off."""
    pieces = re.findall(rb"[\w.+-]+|[^\w.+-]", content)
    for kind, position, choice in damages:
        at, odd = position % (len(pieces) or 1), ODD_BYTES[choice % len(ODD_BYTES)]
        changed = {"drop": [], "repeat": pieces[at : at + 1] * 2, "replace": [odd], "add": [*pieces[at : at + 1], odd]}
        pieces = pieces[:at] + (changed[kind] + pieces[at + 1 :] if kind in changed else [])
    return b"".join(pieces)


def damaged_value(value: Any, damages: list[Damage]) -> Any:
    """Members of a JSON value dropped, repeated, replaced, added."""
    value = copy.deepcopy(value)
    for kind, position, choice in damages:
        holders = list(_holders(value))
        if not holders:
            break
        holder = holders[position % len(holders)]
        keys: list[Any] = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key, odd = (keys[choice % len(keys)] if keys else None), copy.deepcopy(ODD_VALUES[choice % len(ODD_VALUES)])
        if kind == "add" or key is None:
            holder.update({f"key{choice}": odd}) if isinstance(holder, dict) else holder.append(odd)
        elif kind == "drop":
            del holder[key]
        elif kind == "repeat" and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        else:
            holder[key] = odd
    return value


def _holders(value: Any) -> Any:
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _holders(inner)


def writer(folder: Path, files: dict[str, Any]) -> Callable[[list[Damage]], Path]:
    """Return what writes the files, one of them damaged, and gives the path to read."""
    names = list(files)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)

    def write(damages: list[Damage]) -> Path:
        chosen = names[damages[0][1] % len(names)] if damages else ""
        for name, content in files.items():
            if name == chosen:
                damage = damaged_bytes if isinstance(content, bytes) else damaged_value
                content = damage(content, damages)
            write_file(folder / name, content)
        return folder if len(names) > 1 else folder / names[0]

    return write


def fuzz(read: Callable[[Any], Any], write: Callable[[list[Damage]], Any], examples: int = EXAMPLES) -> None:
    """Read damaged files: each gives something, or a sentence."""

    @drawn(examples // FILES, phases=[Phase.generate])  # a seed cannot be made simpler
    @given(seed=SEEDS)
    def check(seed: int) -> None:
        for damages in damages_of(seed):
            refused(read, write(damages))

    check()


def import_each(
    use_case: Callable[[Path], Any], write: Callable[[list[Damage]], Path], *, models: Sequence[type[Model]]
) -> None:
    """Import damaged files, each on its own: what is refused is refused in a sentence and leaves no row of `models`.

    The whole file is not refused, and not all of the damaged ones are taken.
    """

    def is_refused(damages: list[Damage]) -> bool:
        with transaction.atomic():
            result = refused(use_case, write(damages))
            assert not (result and any(model.objects.exists() for model in models))  # type: ignore[attr-defined]
            transaction.set_rollback(True)
        return result

    assert not is_refused([])
    seeds = random.Random(None if IS_LONG else 5)
    drawn = [damages for _ in range(IMPORTS // FILES) for damages in damages_of(seeds.randrange(2**32))]
    assert sum(map(is_refused, drawn)) > 0


def refused(read: Callable[[Any], Any], path: Any) -> bool:
    """Whether `read` refuses what lies at `path`, which it must do in a sentence for anyone who wrote it."""
    try:
        read(path)
    except BenchbenchError as error:
        refusal = error
    else:
        return False
    assert refusal.message.endswith("."), refusal.message
    assert refusal.status < 500, refusal.message
    return True
