"""Every regular expression of the code takes time linear in the text, no matter what the text is.

The patterns are found in the source. Hostile texts are made of a pattern's own characters: each repeated within the
shortest text that it accepts, and each beginning of that text repeated, with an end that it refuses.
"""

import ast
import importlib
import re
import re._constants as codes
import re._parser as parser
from collections import deque
from functools import cache
from itertools import product

import pytest
import regex

from benchbench.ir.planning.matrix import LONGEST_VALUE
from tests.checkout import CHECKOUT
from tests.growth import find_growth_faults
from tests.hostile import yield_hostile

LONGEST = 2**17
REFUSED = "\x01"
SCRIPTS = "a1_ é漢か가ㅎᄒ\u1161\u11a8\u0e01\u0e34ー\u200d\u0301ﾞ\u05b0"  # for patterns of scripts
CALLS = {"compile", "match", "fullmatch", "search", "findall", "finditer", "split", "sub", "subn"}
ANCHORED = {"match", "fullmatch"}  # tried at the beginning alone
CATEGORIES = {codes.CATEGORY_SPACE: " ", codes.CATEGORY_WORD: "a", codes.CATEGORY_DIGIT: "1"}
# Patterns that are put together while the program runs, with texts of which they may be made.
BUILT = {
    "apps/retrieval/encoders/prompts.py:_name": r"(?<![a-z0-9])(?:gte-qwen|qwen3-embedding)",
    "apps/retrieval/strategies/lod.py:build_section": r"\A\s*(?:#+\s*)?head\s*(?:#+\s*)?",
    "apps/retrieval/strategies/lod.py:parse_picks": r"(?<!\w)(?<!\w[-./:])(?:sec_11|sec_1|a)(?!\w|[-./:]\w)",
    "benchbench/files/sectioned.py:find": r" {0,3}#{1,6}[ \t]+head[ \t]*(?:#+[ \t]*)?$",
}

# Patterns that see only texts of a limited length, with that length.
SHORT = {"benchbench/reading/calls.py:VALUE": LONGEST_VALUE}


@cache
def sources():
    return {
        str(path.relative_to(CHECKOUT)): path.read_text()
        for room in ("apps", "benchbench")
        for path in (CHECKOUT / room).rglob("*.py")
        if "migrations" not in path.parts
    }


def yield_calls(tree, function=""):
    """Yield each call of the module `re` with the name of its function, "" at the top of the module."""
    for node in ast.iter_child_nodes(tree):
        inside = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
        called = getattr(node, "func", None)
        if (
            isinstance(called, ast.Attribute)
            and getattr(called.value, "id", "") in ("re", "regex")
            and called.attr in CALLS
        ):
            yield inside, node
        yield from yield_calls(node, inside)


@cache
def list_patterns():
    """Return (name, pattern, whether it is anchored) of the code's patterns, and the built ones that no one named."""
    hits, unnamed = [], []
    uses = {}
    for name, method in re.findall(r"\b(\w+)\.(?=(\w+))", "\n".join(sources().values())):
        uses.setdefault(name, set()).add(method)
    for path, text in sources().items():
        calls = list(yield_calls(ast.parse(text))) if re.search(r"\b(?:re|regex)\.", text) else []
        if any(function == "" for function, _ in calls):
            module = importlib.import_module(path.removesuffix(".py").replace("/", ".").removesuffix(".__init__"))
            for name, value in vars(module).items():
                if isinstance(value, re.Pattern | regex.Pattern) and re.search(
                    rf"^{name}\b.*=|^\s+{name}: .*=", text, re.MULTILINE
                ):
                    hits.append((f"{path}:{name}", value, uses.get(name, set()) & CALLS <= ANCHORED))
        for function, call in calls:
            pattern = call.args[0]
            if function and isinstance(pattern, ast.Constant):
                hits.append((f"{path}:{call.lineno}", re.compile(pattern.value), call.func.attr in ANCHORED))
            elif function and f"{path}:{function}" in BUILT:
                built = re.compile(BUILT[f"{path}:{function}"])
                hits.append((f"{path}:{function}", built, call.func.attr in ANCHORED))
            elif function and not isinstance(pattern, ast.Name):
                unnamed.append(f"{path}:{function}")
    return hits, unnamed


def test_patterns_built_at_run_time_are_named_here():
    result, unnamed = list_patterns()
    assert len(result) > 60
    assert unnamed == []
    assert BUILT.keys() | SHORT.keys() <= {name for name, *_ in result}


def write_shortest(tree):
    """Return a short text that a parsed pattern accepts, not minding what it looks around for."""
    text = ""
    for code, value in tree:
        if code is codes.LITERAL:
            text += chr(value)
        elif code in (codes.IN, codes.ANY, codes.NOT_LITERAL):
            text += choose(code, value)[0]
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            text += write_shortest(value[2]) * max(1, min(value[0], 8))
        elif code is codes.BRANCH:
            text += write_shortest(value[1][0])
        elif code is codes.SUBPATTERN:
            text += write_shortest(value[3])
        elif code is codes.ATOMIC_GROUP:
            text += write_shortest(value)
    return text


def choose(code, value):
    """Return characters that a set admits."""
    if code is not codes.IN:
        return "x"
    negated = value[0][0] is codes.NEGATE
    chosen = ""
    for kind, content in value:
        if kind is codes.LITERAL:
            chosen += chr(content)
        elif kind is codes.RANGE:
            chosen += chr(content[0])
        elif kind is codes.CATEGORY:
            chosen += CATEGORIES.get(content, ".")
    return "".join(c for c in "x .1-" if c not in chosen) or "é" if negated else chosen


def list_characters(tree):
    """Return the characters that the parts of a pattern are about."""
    characters = ""
    for code, value in tree:
        if code is codes.LITERAL:
            characters += chr(value)
        elif code in (codes.IN, codes.ANY, codes.NOT_LITERAL):
            characters += choose(code, value)
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            characters += list_characters(value[2])
        elif code is codes.BRANCH:
            characters += "".join(map(list_characters, value[1]))
        elif code is codes.SUBPATTERN:
            characters += list_characters(value[3])
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            characters += list_characters(value[1])
        elif code is codes.ATOMIC_GROUP:
            characters += list_characters(value)
    return characters


def yield_hostile_to(pattern):
    """Yield functions from a length to a hostile text."""
    if isinstance(pattern, regex.Pattern):
        yield from yield_hostile(SCRIPTS)
        return
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = parser.parse(source, pattern.flags & ~re.DEBUG & ~(re.UNICODE if isinstance(pattern.pattern, bytes) else 0))
    shortest = write_shortest(tree)[:24]
    letters = sorted({*list_characters(tree), " ", "\n"}, key=lambda c: (c.isalnum(), c))[:9]
    for unit in {*("".join(pair) for pair in product(letters, repeat=2)), *letters}:
        yield lambda size, unit=unit: (unit * size)[:size] + REFUSED
    for index in range(len(shortest) + 1):
        before, after = shortest[:index], shortest[index:]
        for letter in letters:
            yield lambda size, b=before, c=letter, a=after: b + c * size + a + REFUSED
        if before:
            yield lambda size, b=before: b * (size // len(b)) + REFUSED
            yield lambda size, b=before: f"{b} " * (size // (len(b) + 1)) + REFUSED


def make_feed(pattern, anchored):
    encode = (
        (lambda text: text) if isinstance(pattern.pattern, str) else (lambda text: text.encode("latin-1", "replace"))
    )
    if anchored:
        return lambda text: (pattern.match(encode(text)), pattern.fullmatch(encode(text)))
    return lambda text: deque(pattern.finditer(encode(text)), maxlen=0)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "pattern", "anchored"), list_patterns()[0], ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_pattern_takes_time_linear_in_the_text(name, pattern, anchored):
    feed, longest = make_feed(pattern, anchored), SHORT.get(name, LONGEST)
    faults = find_growth_faults(feed, yield_hostile_to(pattern), longest)
    assert faults == set(), f"{name}: {pattern.pattern}"
