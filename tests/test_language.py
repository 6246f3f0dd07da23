"""Plain English in names, docstrings, comments, messages, templates and docs. `make lint` runs this module.

Vague names and odd phrases that remain are listed in ALLOWED. Entries may only be removed: one that no longer occurs
fails the test too.
"""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
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
TEMPLATE_CODE = re.compile(r"{%.*?%}|{{.*?}}", re.DOTALL)
MOST_WORDS_OF_A_TEST = 9
MOST_WORDS = {
    "docs": 35_000,
    "README.md": 900,
    "docs/architecture.md": 3_500,
    "docs/decisions.md": 4_000,
    "docs/engines.md": 1_200,
    "docs/scale.md": 1_500,
}

# Remaining hits by file and text: columns, code in f-strings, a system user, a CSS class. Only delete entries.
ALLOWED: dict[tuple[str, str], int] = {
    ("apps/benchmarks/models/benchmarks.py", "place"): 1,
    ("apps/benchmarks/models/lists.py", "place"): 1,
    ("apps/judging/models.py", "place"): 3,
    ("apps/judging/models.py", "wanted"): 1,
    ("apps/judging/models.py", "done"): 1,
    ("apps/operations/models.py", "done"): 1,
    ("apps/judging/llm/prompting.py", "tell"): 1,
    ("apps/judging/models.py", "is none"): 1,
    ("benchbench/files/spec002.py", "is none"): 1,
    ("benchbench/embedded/places.py", "nobody"): 1,
    ("templates/results/stops.html", "beside"): 1,
}


def python_files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((CHECKOUT / folder).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path


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


def prose(text: str) -> Iterator[tuple[str, int]]:
    """Yield the comments, docstrings and messages of a module, with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_text = token.type in (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1))
        if token.type == tokenize.COMMENT or (is_text and " " in token.string):
            yield token.string, token.start[0]


def documents() -> list[Path]:
    top = [CHECKOUT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return [*top, *sorted((CHECKOUT / "docs").rglob("*.md"))]


def vague_names() -> Iterator[tuple[Path, int, str]]:
    for path in python_files("apps", "benchbench"):
        for name, line in bound_names(ast.parse(path.read_text())):
            if name.strip("_").lower() in VAGUE_NAMES and not name.startswith("__"):
                yield path, line, name


def odd_phrases() -> Iterator[tuple[Path, int, str]]:
    for path in python_files("apps", "benchbench"):
        for text, line in prose(path.read_text()):
            for match in ODD_PHRASES.finditer(text):
                yield path, line + text.count("\n", 0, match.start()), match[0]
    for path in [*documents(), *sorted((CHECKOUT / "templates").rglob("*.html"))]:
        text = path.read_text()
        if path.suffix == ".html":
            text = TEMPLATE_CODE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)
        for match in ODD_PHRASES.finditer(text):
            yield path, text.count("\n", 0, match.start()) + 1, match[0]


def odd_openings() -> Iterator[tuple[Path, int, str]]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for path in python_files("apps", "benchbench"):
        for node in ast.walk(ast.parse(path.read_text())):
            docstring = ast.get_docstring(node) if isinstance(node, documented) else None
            if docstring and ODD_OPENINGS.match(docstring):
                yield path, getattr(node, "lineno", 1), docstring.splitlines()[0]


def check(kind: str, hits: Iterator[tuple[Path, int, str]]) -> None:
    """Fail with file and line for each hit that ALLOWED lacks, and for entries of ALLOWED with fewer hits."""
    lines: dict[tuple[str, str], list[str]] = {}
    for path, line, text in hits:
        file = str(path.relative_to(CHECKOUT))
        lines.setdefault((file, text.lower()), []).append(f"{file}:{line}: {kind}: {text}")
    new = [entry for key, entries in lines.items() if len(entries) > ALLOWED.get(key, 0) for entry in entries]
    assert not new, "\n".join(["Write these in plain English; docs/architecture.md has the words:", *new])


def test_allowed_hits_still_occur() -> None:
    """An entry without its hits would let new ones in."""
    found = Counter(
        (str(path.relative_to(CHECKOUT)), text.lower())
        for path, _, text in (*vague_names(), *odd_phrases(), *odd_openings())
    )
    stale = {key: count for key, count in ALLOWED.items() if found[key] != count}
    assert not stale, f"Lower or delete these entries of ALLOWED: {stale}"


def test_names_are_nouns_or_verbs() -> None:
    check("name", vague_names())


def test_prose_has_no_odd_phrases() -> None:
    check("phrase", odd_phrases())


def test_docstrings_begin_with_a_noun_or_verb() -> None:
    check("opening", odd_openings())


def test_names_of_tests_are_short() -> None:
    names = (
        (path, node.lineno, node.name)
        for path in python_files("tests")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )
    long = [f"{path}:{line}: {name}" for path, line, name in names if name.count("_") > MOST_WORDS_OF_A_TEST]
    assert not long, "\n".join(["Shorten these names to nine words:", *long])


def test_documents_are_short() -> None:
    words = Counter({str(path.relative_to(CHECKOUT)): len(path.read_text().split()) for path in documents()})
    words["docs"] = words.total() - words["docs/engines.md"] - words["docs/scale.md"]  # pages of their own length
    assert not {name: words[name] for name, most in MOST_WORDS.items() if words[name] > most}
