"""The groups of the roles."""

from django.db import migrations

from apps.api.access.roles import make_roles


class Migration(migrations.Migration):
    dependencies = [
        ("api", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("benchmarks", "0009_rewriting"),
        ("collections", "0001_initial"),
        ("datasets", "0001_initial"),
        ("judging", "0003_llm_judging"),
        ("mappings", "0002_mapping_for_each_owner"),
        ("operations", "0004_llm_judging"),
        ("retrieval", "0005_llm_revisions"),
    ]
    operations = [migrations.RunPython(make_roles, migrations.RunPython.noop)]
