"""The values of an evaluation are packed: arrays of numbers take long to read and to print."""

from django.db import migrations

import apps.benchmarks.models.values

PACK = """
    CREATE FUNCTION pg_temp.packed(rows double precision[]) RETURNS bytea LANGUAGE sql AS $$
        SELECT int4send(coalesce(array_length(rows, 1), 0))
            || coalesce(string_agg(float8send(coalesce(value, 'NaN')), '' ORDER BY place), '')
        FROM unnest(rows) WITH ORDINALITY AS numbered (value, place)
    $$;
    ALTER TABLE benchmarks_evaluation ALTER COLUMN "values" TYPE bytea USING pg_temp.packed("values");
"""


class Migration(migrations.Migration):
    dependencies = [("benchmarks", "0005_calls")]

    operations = [
        migrations.RunSQL(
            PACK,
            state_operations=[
                migrations.AlterField(
                    "evaluation",
                    "values",
                    apps.benchmarks.models.values.ValuesField(help_text="Per measure, per query; none: failed."),
                )
            ],
        ),
    ]
