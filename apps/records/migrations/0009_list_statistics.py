from django.db import migrations

# Computing statistics of the elements of these arrays takes longer than all others; no plan uses them.
ARRAYS = {
    "benchmarks_stagelist": ("chunk_ids", "scores", "threshold_scores", "document_ids", "chunk_ranks", "lengths"),
    "benchmarks_pairlist": ("positions", "scores", "threshold_scores"),
    "benchmarks_batchvalues": ("query_ids", "failed_query_ids"),
    "benchmarks_evaluation": ("query_ids",),
}


def set_statistics(table: str, columns: tuple[str, ...], target: int) -> str:
    changes = ", ".join(f"ALTER COLUMN {column} SET STATISTICS {target}" for column in columns)
    return f"ALTER TABLE {table} {changes}"


class Migration(migrations.Migration):
    dependencies = [
        ("benchmarks", "0008_rankings_deleted"),
    ]

    operations = [
        migrations.RunSQL(set_statistics(table, columns, 0), set_statistics(table, columns, -1))
        for table, columns in ARRAYS.items()
    ]
