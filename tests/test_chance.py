"""What a test may not leave to chance: clocks, sleeps, ports, and figures that are random without measured bounds."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from tests.chance import LEAST_DEVIATIONS, MEASURED

TESTS = Path(__file__).resolve().parent
CLOCKS = {"time", "monotonic", "perf_counter", "process_time", "thread_time"}
SLEEPS = ("time.sleep(", "asyncio.sleep(", "page.wait_for_timeout(")
RANDOM = re.compile(r"recall|\bshares?\b|narrow|approximate")

# Assertions on a clock, each with the reason why no machine is too busy for them. Entries may only be removed.
CLOCKED = {
    "waiting.py: until": "It ends what hangs, after ten minutes.",
    "faults/kit.py: until": "It ends what hangs, after minutes.",
    "faults/test_frozen.py: test_a_cancel_does_not_wait_for_a_frozen_worker": "Twenty seconds, of which it takes two.",
    "faults/test_load.py: test_concurrent_users_are_neither_refused_nor_delayed": "Its limit is that of a fault.",
    "browser/test_messy_files.py: test_stranger_reaches_a_verdict_from_excel": "Five minutes; it takes half of one.",
    "browser/test_new_evaluation.py: test_new_user_reaches_a_verdict_on_adi": "Five minutes, of which it takes one.",
    "engines/test_asking.py: test_an_engine_that_was_down_resumes": "A least time, not a most.",
    "engines/test_asking.py: test_engine_is_asked_when_it_wants_to_be": "A least time, not a most.",
    "engines/test_asking.py: test_engine_never_makes_us_wait_beyond_its_patience": "Thirty seconds; it takes two.",
    "engines/test_pacing.py: test_two_workers_send_no_faster_than_the_rate": "Least times.",
    "engines/test_pacing.py: test_each_request_is_due_one_interval_later": "Bounds by clocks read before and after.",
    "engines/test_pacing.py: test_slots_of_a_killed_worker_come_back": "A least time.",
    "engines/test_pacing.py: test_requests_are_sent_at_their_rate": "Bounds by clocks read before and after.",
    "admin/test_reading.py: test_this_process_does_not_work_while_another_reads": "Its own processor's time.",
    "benchmarks/test_little_memory.py: test_one_time_reads_are_not_charged_to_queries": "It sets the clock.",
    "retrieval/test_lod_llm.py: test_kept_answers_keep_times": "It sets the clock.",
    "retrieval/test_vector_cache.py: test_to_load_the_model_and_to_wait_cost_nothing": "A part is less than the whole.",
}
# Sleeps before an assertion, each with the reason why it needs no condition. Entries may only be removed.
SLEPT = {
    "test_embedded.py: assert server_ids(home) == servers": "What must not happen has time to happen.",
    "test_embedded.py: assert server_ids(home) == servers, 'the second child still uses them'": "The same.",
    "browser/test_live.py: assert set(announcements_of(page)[announcements_of(page).index('Live'):]) == {'Live'}": (
        "It waits."
    ),
    "browser/test_rounds.py: assert count(opened) == 1": "The same, without a connection.",
}
# Waits that may end early. Entries may only be removed.
SHORT = {
    "services.py: process.wait(timeout=10)": "Then it is killed.",
    "engines/search_servers.py: server.wait(10)": "Then it is killed.",
    "operations/test_cancelling.py: until.wait(0.05)": "It is a turn of a loop.",
    "operations/test_cancelling.py: cancelled.result(2)": "What must not happen has time to happen.",
}
WAITS = ("wait", "join", "result", "exception", "recv", "communicate")
LEAST_WAIT = 60  # seconds


@cache
def trees() -> list[tuple[str, ast.Module]]:
    return [(str(path.relative_to(TESTS)), ast.parse(path.read_text())) for path in sorted(TESTS.rglob("*.py"))]


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def reads_a_clock(node: ast.AST, names: set[str]) -> bool:
    """Return whether an expression calls a clock of `time`, or uses a name that was set by one."""
    for piece in ast.walk(node):
        if isinstance(piece, ast.Attribute) and piece.attr in CLOCKS and ast.unparse(piece.value) == "time":
            return True
        if isinstance(piece, ast.Name | ast.Attribute) and ast.unparse(piece) in names:
            return True
    return False


def find_clocked(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.Assert]:
    """Return the assertions of a function that compare what a clock said."""
    names: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and reads_a_clock(node.value, names):
            names |= {ast.unparse(piece) for target in node.targets for piece in getattr(target, "elts", [target])}
    asserts = [node for node in ast.walk(function) if isinstance(node, ast.Assert)]
    return [
        one
        for one in asserts
        if any(isinstance(segment, ast.Compare) for segment in ast.walk(one.test)) and reads_a_clock(one.test, names)
    ]


def find_slept(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return the assertions that follow a sleep in one block."""
    hits = []
    for node in ast.walk(function):
        for block in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
            for first, then in pairwise(block) if isinstance(block, list) else ():
                is_sleep = isinstance(first, ast.Expr) and ast.unparse(first).removeprefix("await ").startswith(SLEEPS)
                if is_sleep and isinstance(then, ast.Assert):
                    hits.append(ast.unparse(then))
    return hits


def find_short_waits(tree: ast.Module) -> list[str]:
    """Return the waits for another thread or process that end before the machine may have got to it."""
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)]
    limits = [(one, [*one.args, *(key.value for key in one.keywords if key.arg == "timeout")]) for one in calls]
    return [
        ast.unparse(call)
        for call, values in limits
        if call.func.attr in WAITS and any(isinstance(one, ast.Constant) and is_short(one.value) for one in values)
    ]


def is_short(value: object) -> bool:
    return isinstance(value, int | float) and 0 < value < LEAST_WAIT


def test_waits_are_longer_than_a_busy_machine_takes():
    hits = {f"{path}: {one}" for path, tree in trees() for one in find_short_waits(tree)}
    assert hits - SHORT.keys() == set(), "wait for HANG_SECONDS (tests/waiting.py)"
    assert SHORT.keys() - hits == set(), "these are gone: take them off the list"


def test_assertions_on_clocks_are_known_to_be_safe():
    hits = {f"{path}: {one.name}" for path, tree in trees() for one in functions(tree) if find_clocked(one)}
    assert hits - CLOCKED.keys() == set(), "wait for a condition (tests/waiting.py), set the clock, or say why"
    assert CLOCKED.keys() - hits == set(), "these are gone: take them off the list"


def test_assertions_wait_for_conditions_not_sleeps():
    hits = {f"{path}: {one}" for path, tree in trees() for function in functions(tree) for one in find_slept(function)}
    assert hits - SLEPT.keys() == set(), "wait for a condition (tests/waiting.py)"
    assert SLEPT.keys() - hits == set(), "these are gone: take them off the list"


@pytest.mark.parametrize(
    ("source", "clocked", "slept"),
    [
        ("began = time.monotonic()\nassert time.monotonic() - began < 5", 1, 0),
        ("began = time.time()\ntook = time.time() - began\nassert took < 5", 1, 0),
        ("self.began = time.time()\nassert act() < self.began", 1, 0),
        ("began = time.monotonic()\nassert act(), began", 0, 0),
        ("time.sleep(1)\nassert done()", 0, 1),
        ("await asyncio.sleep(1)\nassert done()", 0, 1),
        ("while not done():\n    time.sleep(1)\nassert done()", 0, 0),
    ],
)
def test_clocks_and_sleeps_are_found(source, clocked, slept):
    (function,) = functions(ast.parse("async def test():\n    " + source.replace("\n", "\n    ")))
    assert (len(find_clocked(function)), len(find_slept(function))) == (clocked, slept)


def bounds_of_random(tree: ast.Module) -> Iterator[str]:
    """Yield the assertions that bound a recall by a number between 0 and 1 that nothing explains."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare) or not RANDOM.search(ast.unparse(node)):
            continue
        sides = [node.left, *node.comparators]
        for operator, pair in zip(node.ops, pairwise(sides), strict=True):
            numbers = [one.value for one in pair if isinstance(one, ast.Constant) and isinstance(one.value, float)]
            if isinstance(operator, ast.Lt | ast.Gt | ast.LtE | ast.GtE) and any(0 < one < 1 for one in numbers):
                yield ast.unparse(node)


def test_bounds_of_random_figures_are_measured():
    searching = ("retrieval/", "benchmarks/", "results/", "client/", "api/")
    hits = [f"{path}: {one}" for path, tree in trees() if path.startswith(searching) for one in bounds_of_random(tree)]
    assert hits == [], "call check_chance (tests/chance.py), or compare with what must come out"


@pytest.mark.parametrize("name", MEASURED)
def test_bounds_are_far_from_what_was_measured(name):
    one = MEASURED[name]
    assert one.low <= one.least <= one.mean <= one.greatest <= one.high
    assert one.low in (one.least, 0) or one.mean - one.low >= LEAST_DEVIATIONS * one.deviation
    assert one.high in (one.greatest, 1) or one.high - one.mean >= LEAST_DEVIATIONS * one.deviation


def test_rates_are_counted_in_windows_that_stay_open():
    """A window ends at each full minute, hour or day, and its count begins again."""
    setting = [path for path, _ in trees() if re.search(r"API_RATES(\s*\|| = dict\()", (TESTS / path).read_text())]
    assert "api/test_base.py" in setting
    assert [path for path in setting if not re.search(r"open_window|10\*\*10", (TESTS / path).read_text())] == []


def test_ports_are_reserved_or_held():
    """A port that is let go before a server takes it may be another's by then."""
    hits = {path for path, _ in trees() if re.search(r"\.bind\(\(", (TESTS / path).read_text())}
    assert hits == {"ports.py", "benchmarks/test_notices.py", "engines/test_attacks.py"}  # the last two hold theirs
