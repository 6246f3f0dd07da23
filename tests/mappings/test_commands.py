import json

import pytest
from django.core.management import CommandError, call_command

from apps.mappings.creating import create_mapping
from apps.mappings.models import Mapping
from tests.factories import make_collection, make_dataset


@pytest.fixture
def mapping(transactional_db) -> Mapping:
    judgments = [({"document_id": "a"}, 1), ({"uri": "file:///a"}, 2), ({"document_id": "x"}, 1)]
    library = make_collection(documents=[{"external_id": "a", "uri": "file:///a"}])
    return create_mapping(make_dataset({"q1": judgments}), library, name="trial")


@pytest.mark.parametrize("most", [0, 100], ids=["queued", "at once"])
def test_resolve_mapping_waits_and_tells_what_came_of_it(mapping, capsys, settings, most):
    settings.BENCHMARK_MAPPING_RESOLVE_SYNC_MAX_REFS = most
    call_command("resolve_mapping", "trial", "--json")
    assert json.loads(capsys.readouterr().out) == {
        "id": str(mapping.pk),
        "name": "trial",
        "status": "partial",
        "dataset_version": 1,
        "mapped": 2,
        "total": 3,
        "counts": {"resolved": 2, "ambiguous": 0, "not_found": 1, "invalid_ref": 0, "conflicts": 1},
    }
    call_command("resolve_mapping", str(mapping.pk))
    assert capsys.readouterr().out == (
        'Mapping "trial" is partial: 2 of 3 judgments (not found 1, conflicts 1). '
        'Without a document: q1 {"document_id": "x"}.\n'
    )


def test_resolve_mapping_needs_one_mapping(mapping, admin_user):
    with pytest.raises(CommandError, match=r"No mapping is called 'trail'; there is trial\."):
        call_command("resolve_mapping", "trail")
    create_mapping(make_dataset(name="other"), mapping.collection, name="trial", owner=admin_user)
    with pytest.raises(CommandError, match="Several mappings are called 'trial'"):
        call_command("resolve_mapping", "trial")
