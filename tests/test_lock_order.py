"""Statements that may lock several rows: each locks them in one order, or no one else can lock them meanwhile."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

APPS = Path(__file__).resolve().parent.parent / "apps"
SQL = re.compile(r"^\s*(?:WITH|UPDATE|DELETE FROM|INSERT INTO)\b|\bFOR (?:NO KEY )?UPDATE\b|\bON CONFLICT\b")
ONE_ROW = re.compile(r"\bpk=|\.get\(|\.first\(\)|read_again\(|refresh\(|\bvars\(")
IN_ORDER = re.compile(r"\bsorted\(|order_by\(|ORDER BY|lock_in_order\(")
STATEMENTS = ("bulk_create", "bulk_update", "copy_rows", "delete_rows", "delete", "update", "select_for_update")
NO_WAIT = re.compile(r"skip_locked=True|SKIP LOCKED")

# Why the statements of a function need no order of their own.
PARENT = "It holds a lock on the rows' parent, as every other statement over them does."
NEW = "The rows belong to a parent that this transaction made, so no other one knows them."
ONE = "It changes one row."
FREE = "It has locked the rows before, and skipped those that others had locked."
BATCH = "Each commit of a batch holds the advisory lock of the batch."
LITE = "The database is a file of SQLite."
REASONS = {
    "accounts/tokens.py exchange": ONE,
    "api/idempotency.py _delete_expired": FREE,
    "execution/defining/creating.py create_benchmark": NEW,
    "experiments/external/importing.py _lock_benchmark": ONE,
    "verdicts/gates/gating.py _store": NEW,
    "execution/launching.py launch": PARENT,
    "execution/launching.py retry": PARENT,
    "records/measuring/again.py lock_benchmark": ONE,
    "records/measuring/batch_values.py delete_values": PARENT,
    "records/measuring/batch_values.py store_values": BATCH,
    "records/measuring/evaluating.py": "Each statement changes one row, and `_store` sorts them.",
    "execution/running/finishing.py": "Each statement changes one row, and `_store_results` sorts them.",
    "records/lists/final.py store_final_lists": BATCH,
    "records/lists/final.py store_stage_lists": BATCH,
    "verdicts/stored.py load_verdict": ONE,
    "verdicts/schedules/notifying.py _send": ONE,
    "verdicts/schedules/starting.py start_due": ONE,
    "records/measuring/again.py lock_rankings": "A later statement orders the rows.",
    "collections/duplicates.py": "It reads alone.",
    "collections/importing.py _create": PARENT,
    "collections/importing.py _remove_missing": PARENT,
    "collections/importing.py _store_sections": PARENT,
    "collections/editing.py delete_collection": PARENT,
    "collections/importing.py _update": PARENT,
    "collections/states.py delete_history": PARENT,
    "collections/states.py keep_former": PARENT,
    "collections/stubs.py _set_titles": "`lock_in_order` has locked them.",
    "collections/stubs.py upsert_documents": "A part of the statement in `_insert`.",
    "datasets/editing/drafts.py _change_judgments": PARENT,
    "datasets/editing/drafts.py discard_draft": PARENT,
    "datasets/editing/drafts.py end_queries": PARENT,
    "datasets/editing/drafts.py write_version": PARENT,
    "datasets/editing/judgments.py _write": PARENT,
    "datasets/editing/queries.py add_query": PARENT,
    "datasets/editing/queries.py edit_query": PARENT,
    "datasets/importing.py import_dataset": ONE,
    "demo/engine.py write_database": LITE,
    "engines/storing.py": "`store_replies` sorts the rows.",
    "judging/closing.py close_round": PARENT,
    "judging/grading.py _withdraw_grades": PARENT,
    "judging/grading.py grade_item": ONE,
    "judging/judges.py change_round": PARENT,
    "judging/llm/calibration.py draw_sample": PARENT,
    "judging/opening.py _write": NEW,
    "judging/opening.py open_round": NEW,
    "judging/settling/deciding.py _reorder_front": FREE,
    "judging/settling/deciding.py renew": ONE,
    "mappings/resolving.py store_rulings": PARENT,
    "operations/ending.py settle": FREE,
    "operations/leasing.py _begin": FREE,
    "operations/leasing.py _lock_active": ONE,
    "operations/leasing.py _renew": ONE,
    "operations/leasing.py add_batches": PARENT,
    "operations/leasing.py claim": FREE,
    "operations/leasing.py commit": ONE,
    "operations/leasing.py report": ONE,
    "operations/waiting.py _store_reason": ONE,
    "operations/workers/stragglers.py claim_backup": FREE,
    "operations/workers/limits.py": "It reads the states of sessions.",
    "operations/working.py _end_attempt": ONE,
    "operations/working.py _release_batch": ONE,
    "operations/working.py release": ONE,
    "results/retention/pruning.py _delete_lists": "A benchmark that runs, and so stores lists, is not pruned.",
    "retrieval/building.py add_vectors_cost": PARENT,
    "retrieval/deleting.py _free": PARENT,
    "retrieval/chunking.py": PARENT,
    "retrieval/search/lexical_indexes.py store_pieces": NEW,
    "retrieval/deleting.py clear_vectors": "It is refused while work is active that uses the vectors.",
    "retrieval/deleting.py delete_unused_parts": FREE,
    "retrieval/encoders/encoding.py time_encoding": ONE,
    "retrieval/encoders/vector_cache.py": "`add_vectors` sorts the rows.",
    "retrieval/llms/answers.py": ONE,
    "retrieval/llms/answers.py store_answer": ONE,
    "retrieval/search/full_text.py _fill": NEW,
    "retrieval/search/holding.py lock_chunk_set": ONE,
    "retrieval/stores/sqlite_vec_store.py fill": LITE,
}


def list_statements() -> Iterator[tuple[str, str]]:
    """Yield where each statement is that may lock several rows without an order, and its source."""
    for file in sorted(APPS.rglob("*.py")):
        if "migrations" in file.parts:
            continue
        text = file.read_text()
        tree, lines = ast.parse(text), text.splitlines()
        documented = {id(doc.value) for node in ast.walk(tree) if isinstance(doc := first_statement(node), ast.Expr)}
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        for statement in (node for node in ast.walk(tree) if isinstance(node, ast.stmt)):
            for node in list_own_nodes(statement):
                is_docstring = isinstance(node, ast.Constant) and id(node) in documented
                if not isinstance(node, ast.Call | ast.Constant) or is_docstring:
                    continue
                source = "\n".join(lines[statement.lineno - 1 : statement.end_lineno])
                if locks_rows(node, source):
                    inside = [one.name for one in functions if one.lineno <= node.lineno <= (one.end_lineno or 0)]
                    yield f"{file.relative_to(APPS)} {inside[-1] if inside else ''}".strip(), source


def first_statement(node: ast.AST) -> ast.AST | None:
    body = getattr(node, "body", None)
    return body[0] if isinstance(body, list) and body else None


def list_own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the expressions of a statement without those of the statements in it."""
    waiting: list[ast.AST] = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]


def locks_rows(node: ast.AST, statement: str) -> bool:
    """Return whether an expression locks rows, perhaps several, in an order that its statement does not give."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return bool(SQL.search(node.value)) and not (IN_ORDER.search(statement) or NO_WAIT.search(statement))
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
    if name not in STATEMENTS:
        return False
    source = ast.unparse(node)
    if name in ("bulk_create", "copy_rows", "delete_rows"):
        return not IN_ORDER.search(statement)
    if name == "bulk_update" or (name == "delete" and not node.args and ("objects" in source or "filter(" in source)):
        return not ONE_ROW.search(source)
    if name == "update" and isinstance(node.func, ast.Attribute):
        return bool(node.keywords) and not node.args and not ONE_ROW.search(source.split(".update(")[0])
    is_lock = name == "select_for_update"
    return is_lock and not any(pattern.search(statement) for pattern in (ONE_ROW, IN_ORDER, NO_WAIT))


COUNTERS = {"datasets/formats/query_log.py _group"}  # not of the database


def test_statements_over_several_rows_have_one_order():
    hits = dict(list_statements())
    unexplained = {position: source for position, source in hits.items() if position not in {*REASONS, *COUNTERS}}
    assert unexplained == {}, "use benchbench.database.ordered, sort the keys, or say in REASONS why it needs no order"
    assert {*REASONS, *COUNTERS} - hits.keys() == set(), "these have no such statement any more"


def test_statement_without_an_order_is_noticed():
    for text in (
        "Run.objects.filter(pk__in=keys).update(status=1)",
        "rows.update(status=1)",
        "Run.objects.bulk_create(rows, ignore_conflicts=True)",
        "Run.objects.bulk_update(rows, ['status'])",
        "binary.copy_rows('runs', columns, rows)",
        "list(Run.objects.select_for_update().filter(benchmark=benchmark))",
        "Run.objects.filter(benchmark=benchmark).delete()",
        "cursor.execute('UPDATE runs SET status = 1')",
        "cursor.execute('SELECT 1 FROM runs FOR UPDATE')",
    ):
        statement = ast.parse(text).body[0]
        assert any(locks_rows(node, text) for node in list_own_nodes(statement)), text
    for text in (
        "Run.objects.filter(pk=1).update(status=1)",
        "Run.objects.bulk_create(sorted(rows), ignore_conflicts=True)",
        "list(Run.objects.select_for_update().order_by('pk'))",
        "update_in_order(rows, status=1)",
        "counts.update(other)",
    ):
        statement = ast.parse(text).body[0]
        assert not any(locks_rows(node, text) for node in list_own_nodes(statement)), text
