"""Plain English in names, docstrings, comments, messages, templates, scripts and docs. `make lint` runs this module.

Vague names and odd phrases that remain are listed in ALLOWED. Entries may only be removed: one that no longer occurs
fails the test too.
"""

import ast
import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

from tests.checkout import CHECKOUT

VAGUE_NAMES = set(
    re.findall(
        r"\w+",
        "told tell tells said say says stated made makes kept keeps held known wanted asked named given done "
        "place part parts own other others where of there most least gone found shown lack lacks whole rest "
        "what which who whose why how beside besides anew here ",
    )
)
ODD_PHRASES = re.compile(
    r"\b(?:nobody|somebody|whoever|whomever|whatever|anew|besides?|amid|lest|reckon\w*|be had|of before|tells?"
    r"|g(?:o|oes|one|ing) on with|(?:is|are|was|were|be) told|that there (?:is|are|was|were)"
    r"|(?:is|are) no (?!longer|more|less|fewer)\w+|the ones? (?:that|which|who)|(?:is|has|have) none"
    r"|stands?(?! for\b)|without a word|in so far|in as far)\b",
    re.IGNORECASE,
)
ODD_OPENINGS = re.compile(r"(?:What|Who|Whose|Whoever|Whom|Where|Which|Of|With|How|That|Those|Else|As|In)\b")
QUOTED_OPENINGS = re.compile(rf'"\s*{ODD_OPENINGS.pattern}')
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
COMMENT_OR_STRING = re.compile(
    r'#[^\n]*|"""(?:[^\\]|\\.)*?"""|"(?:[^"\\\n]|\\.)*"|\'\'\'(?:[^\\]|\\.)*?\'\'\'|\'(?:[^\'\\\n]|\\.)*\'', re.DOTALL
)
SCRIPT_BINDING = re.compile(
    r"\b(?:const|let|var)\s+([\[{][^=]*?[\]}]|\w+)\s*(?:=|of\b)|\bfunction\s+(\w+\([^()]*\))"
    r"|^ +(?:async )?(?!if|for|while|switch|catch)(\w+\([^()]*\)) \{|\(([^()]*)\) =>|\b(\w+) =>",
    re.MULTILINE,
)
TEMPLATE_CODE = re.compile(r"{%.*?%}|{{.*?}}", re.DOTALL)
MOST_WORDS_OF_A_TEST = 9
MOST_WORDS = {
    "docs": 35_000,
    "README.md": 900,
    "docs/architecture.md": 3_500,
    "docs/decisions.md": 4_000,
    "docs/engines.md": 1_200,
    "docs/languages.md": 900,
    "docs/scale.md": 1_500,
}

# Remaining hits by file and text: columns, code in f-strings, a system user, a CSS class, fields of tests. Only delete
# entries.
ALLOWED: dict[tuple[str, str], int] = {
    ("apps/records/models/benchmarks.py", "place"): 1,
    ("apps/records/models/lists.py", "place"): 1,
    ("apps/judging/models.py", "place"): 3,
    ("apps/judging/models.py", "wanted"): 1,
    ("apps/judging/models.py", "done"): 1,
    ("apps/operations/models.py", "done"): 1,
    ("apps/judging/llm/prompting.py", "tell"): 1,
    ("apps/judging/models.py", "is none"): 1,
    ("benchbench/files/spec002.py", "is none"): 1,
    ("benchbench/embedded/places.py", "nobody"): 1,
    ("templates/results/stops.html", "beside"): 1,
    ("tests/admin/test_markup.py", "named"): 1,
    ("tests/admin/test_markup.py", "told"): 1,
    ("tests/api/callers.py", "other"): 1,
    ("tests/api/test_refusals.py", "whole"): 1,
    ("tests/chance.py", "least"): 1,
    ("tests/client/scripted.py", "asked"): 1,
    ("tests/operations/test_subjects.py", "other"): 1,
    ("tests/test_reading.py", "parts"): 1,
    ("tests/test_reading.py", "other"): 1,
}


def python_files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((CHECKOUT / folder).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


Hit = tuple[Path, int, str]


def listed(find: Callable[[], Iterator[Hit]]) -> Callable[[], list[Hit]]:
    """Find once for all tests: each looks through every file."""
    return functools.cache(lambda: list(find()))


@functools.cache
def read(path: Path) -> str:
    return path.read_text()


def mentioned_names(code: CodeType) -> Iterator[str]:
    """Yield all names that compiled code binds, and others: to compile a module is quicker than to walk its tree."""
    yield from (code.co_name, *code.co_names, *code.co_varnames, *code.co_cellvars)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from mentioned_names(constant)
        elif isinstance(constant, str):  # of an annotation without a value
            yield constant


def is_vague(name: str) -> bool:
    return name.strip("_").lower() in VAGUE_NAMES and not name.startswith("__")


def bound_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the names that assignments, arguments, functions and classes bind, with their lines."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node.lineno
            case ast.arg():
                yield node.arg, node.lineno
            case ast.Name(ctx=ast.Store()):
                yield node.id, node.lineno


def pieces(text: str) -> Iterator[tuple[str, int]]:
    """Yield the comments and strings of a module, with their lines."""
    for match in COMMENT_OR_STRING.finditer(text):
        yield match[0], text.count("\n", 0, match.start()) + 1


def prose(text: str) -> Iterator[tuple[str, int]]:
    """Yield the comments, docstrings and messages of a module, with their lines."""
    yield from ((piece, line) for piece, line in pieces(text) if piece.startswith("#") or " " in piece)


def comments(text: str) -> Iterator[tuple[str, int]]:
    """Yield the comments and docstrings of a module, with their lines."""
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, DOCUMENTED))
    starts = {node.body[0].lineno for node in nodes if ast.get_docstring(node) is not None}
    yield from ((piece, line) for piece, line in pieces(text) if piece.startswith("#") or line in starts)


def documents() -> list[Path]:
    top = [CHECKOUT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return [*top, *sorted((CHECKOUT / "docs").rglob("*.md"))]


def scripts() -> list[Path]:
    return sorted((CHECKOUT / "static" / "benchbench").glob("*.js"))


def script_names(text: str) -> Iterator[tuple[str, int]]:
    """Yield the names that a script binds: of `const` and `let`, of functions and methods, and of their parameters."""
    for match in SCRIPT_BINDING.finditer(text):
        bound = re.sub(r"\w+\s*:", "", "".join(group or "" for group in match.groups()))
        for name in re.findall(r"\w+", re.sub(r"=[^,]*", "", bound)):
            yield name, text.count("\n", 0, match.start()) + 1


@listed
def vague_names() -> Iterator[Hit]:
    for path in python_files("apps", "benchbench", "tests"):
        if any(map(is_vague, mentioned_names(compile(read(path), path, "exec", dont_inherit=True)))):
            yield from ((path, line, name) for name, line in bound_names(ast.parse(read(path))) if is_vague(name))
    for path in scripts():
        yield from ((path, line, name) for name, line in script_names(read(path)) if is_vague(name))


@listed
def odd_phrases() -> Iterator[Hit]:
    texts: dict[Path, Iterator[tuple[str, int]]] = {}
    for readable, folders in ((prose, ("apps", "benchbench")), (comments, ("tests",))):
        for path in python_files(*folders):
            if any(ODD_PHRASES.search(text) for text, _ in pieces(read(path))):
                texts[path] = readable(read(path))
    for path in [*documents(), *scripts(), *sorted((CHECKOUT / "templates").rglob("*.html"))]:
        text = read(path)
        if path.suffix == ".html":
            text = TEMPLATE_CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
        texts[path] = iter([(text, 1)])
    for path, readable_texts in texts.items():
        for text, line in readable_texts:
            for match in ODD_PHRASES.finditer(text):
                yield path, line + text.count("\n", 0, match.start()), match[0]


@listed
def odd_openings() -> Iterator[Hit]:
    for path in python_files("apps", "benchbench"):
        nodes: Any = ast.walk(ast.parse(read(path))) if QUOTED_OPENINGS.search(read(path)) else ()
        for node in nodes:
            docstring = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
            if docstring and ODD_OPENINGS.match(docstring):
                yield path, getattr(node, "lineno", 1), docstring.splitlines()[0]


def check(kind: str, hits: list[Hit]) -> None:
    """Fail with file and line for each hit that ALLOWED lacks, and for entries of ALLOWED with fewer hits."""
    lines: dict[tuple[str, str], list[str]] = {}
    for path, line, text in hits:
        file = str(path.relative_to(CHECKOUT))
        lines.setdefault((file, text.lower()), []).append(f"{file}:{line}: {kind}: {text}")
    new = [entry for key, entries in lines.items() if len(entries) > ALLOWED.get(key, 0) for entry in entries]
    assert not new, "\n".join(["Write these in plain English; docs/architecture.md has the words:", *new])


def test_allowed_hits_still_occur() -> None:
    """An entry without its hits would let new ones in."""
    result = Counter(
        (str(path.relative_to(CHECKOUT)), text.lower())
        for path, _, text in (*vague_names(), *odd_phrases(), *odd_openings())
    )
    stale = {key: count for key, count in ALLOWED.items() if result[key] != count}
    assert not stale, f"Lower or delete these entries of ALLOWED: {stale}"


def test_names_are_nouns_or_verbs() -> None:
    check("name", vague_names())


def test_prose_has_no_odd_phrases() -> None:
    check("phrase", odd_phrases())


def test_docstrings_begin_with_a_noun_or_verb() -> None:
    check("opening", odd_openings())


def test_names_of_tests_are_short() -> None:
    long = [
        f"{path}:{read(path).count(chr(10), 0, match.start()) + 1}: {match[1]}"
        for path in python_files("tests")
        for match in re.finditer(r"^ *(?:async )?def (test_\w+)", read(path), re.MULTILINE)
        if match[1].count("_") > MOST_WORDS_OF_A_TEST
    ]
    assert not long, "\n".join(["Shorten these names to nine words:", *long])


def test_documents_are_short() -> None:
    words = Counter({str(path.relative_to(CHECKOUT)): len(path.read_text().split()) for path in documents()})
    separate = ("docs/engines.md", "docs/languages.md", "docs/scale.md")  # pages of their own length
    words["docs"] = words.total() - sum(words[page] for page in separate)
    assert not {name: words[name] for name, limit in MOST_WORDS.items() if words[name] > limit}
