"""The size of the code, by room: lines, modules, imports, small modules, and modules that one other alone imports.

A line of code holds something besides blanks, a comment or a docstring. Migrations do not count. A small module has
fewer than 40 lines of code; packages (`__init__.py`) count among the modules, and not among the small ones. An importer
is another module of apps or benchbench; imports for the type checker alone make none.
"""

import argparse
import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOTS = ("apps", "benchbench")
SMALL = 40
NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


@dataclass(frozen=True)
class Module:
    """A module: its dotted name, the numbers of its lines of code and of its imports, and what it imports."""

    name: str
    is_package: bool
    code: frozenset[int]
    imports: frozenset[int]
    imported: frozenset[str]

    @property
    def room(self) -> str:
        parts = self.name.split(".")
        return ".".join(parts[:2]) if len(parts) > 2 or self.is_package else parts[0]

    @property
    def is_small(self) -> bool:
        return len(self.code) < SMALL and not self.is_package


def read(path: Path, folder: Path) -> Module:
    text = path.read_text()
    tree = ast.parse(text)
    lines = code_lines(text, tree)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    parts = path.relative_to(folder).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    return Module(
        name=".".join(parts[:-1] if is_package else parts),
        is_package=is_package,
        code=lines,
        imports=lines & {line for node in imports for line in lines_of(node)},
        imported=frozenset(names_imported(tree)),
    )


def code_lines(text: str, tree: ast.Module) -> frozenset[int]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    held = {line for token in tokens if token.type not in NO_CODE for line in range(token.start[0], token.end[0] + 1)}
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            held -= lines_of(node.body[0])
    return frozenset(held)


def lines_of(node: ast.stmt) -> set[int]:
    return set(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def names_imported(tree: ast.AST) -> Iterator[str]:
    """Yield what a module imports at run time, each name both as it stands and as that of the module that has it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif not (isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")):
            yield from names_imported(node)


def importers(modules: list[Module]) -> Counter[str]:
    """Return by how many other modules each is imported: `from a.b import c` imports a.b.c, or else a.b."""
    names = {module.name for module in modules}
    counts: Counter[str] = Counter()
    for module in modules:
        owners = {name if name in names else name.rpartition(".")[0] for name in module.imported}
        counts.update(owners & names - {module.name})
    return counts


def modules_below(folder: Path, *roots: str) -> list[Module]:
    paths = sorted(path for root in roots for path in (folder / root).rglob("*.py"))
    return [read(path, folder) for path in paths if "migrations" not in path.parts]


def row(name: str, modules: list[Module], counts: Counter[str]) -> str:
    lines = sum(len(module.code) for module in modules)
    share = sum(len(module.imports) for module in modules) / max(lines, 1)
    small = sum(module.is_small for module in modules)
    single = sum(counts[module.name] == 1 for module in modules)
    return f"{name:<24}{lines:>8,}{len(modules):>9,}{share:>9.1%}{small:>15,}{single:>13,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    checkout = Path(__file__).resolve().parent.parent
    parser.add_argument("folder", nargs="?", type=Path, default=checkout, help="checkout to count (default: this one)")
    folder = parser.parse_args().folder
    modules = modules_below(folder, *ROOTS)
    counts = importers(modules)
    print(f"{'room':<24}{'lines':>8}{'modules':>9}{'imports':>9}{f'under {SMALL} lines':>15}{'one importer':>13}")
    for room in sorted({module.room for module in modules}):
        print(row(room, [module for module in modules if module.room == room], counts))
    print(row("apps and benchbench", modules, counts))
    tests = modules_below(folder, "tests")
    print(f"{'tests':<24}{sum(len(module.code) for module in tests):>8,}{len(tests):>9,}")


if __name__ == "__main__":
    main()
