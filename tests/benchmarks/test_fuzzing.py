"""Valid runs and experiments, damaged: what cannot be imported is refused in a sentence, and leaves no rows."""

import json
from pathlib import Path
from typing import Any

import pytest

from apps.collections.models import Collection, Document
from apps.datasets.models import Dataset, DatasetVersion
from apps.experiments.experiments import plan_experiment, prepare_experiment
from apps.experiments.external.importing import import_runs
from apps.mappings.models import Mapping
from apps.records.models import Benchmark, Evaluation, QueryResult, Run
from tests.benchmarks.laboratory import EXPERIMENT
from tests.damages import Damage, damaged_value, import_each, writer
from tests.datasets.valid import DOCUMENT, TRUTH
from tests.factories import make_dataset
from tests.files.samples import RUN as FLOWBABY
from tests.files.samples import TREC_RUN, write_file

pytestmark = [pytest.mark.django_db, pytest.mark.fuzz]
RUNS: dict[str, Any] = {"bm25.run": TREC_RUN, "run.json": FLOWBABY}
DATA = {"ground_truth.json": TRUTH, "documents/a.json": DOCUMENT, "documents/z.json": DOCUMENT | {"id": "Z"}}


@pytest.mark.parametrize("name", RUNS)
def test_run_import_is_atomic(name, tmp_path):
    dataset = make_dataset({key: [({"document_id": "d1"}, 1), ({"uri": "doc3"}, 2)] for key in ("q1", "q2", "q4")})

    def use_case(path: Path) -> None:
        ((run, report),) = import_runs([path], dataset=dataset).runs
        ranked = QueryResult.objects.filter(run=run).values_list("document_ids", flat=True)
        assert sum(map(len, ranked)) == report.results
        assert len(ranked) == report.queries == 3
        assert Evaluation.objects.filter(run=run).count() == 1

    models = (Benchmark, Run, QueryResult, Evaluation, Mapping, Collection, Document)
    import_each(use_case, writer(tmp_path, {name: RUNS[name]}), models=models)


def test_an_experiment_is_imported_whole_or_not_at_all(tmp_path):
    """Its embeddings stay: another name would be that of a model to load."""
    write_data = writer(tmp_path, DATA)
    declared = {key: value for key, value in EXPERIMENT.items() if key != "embeddings"}

    def write(damages: list[Damage]) -> Path:
        is_data = not damages or damages[0][2] % 2 > 0
        write_data(damages if is_data else [])
        experiment = (declared if is_data else damaged_value(declared, damages)) | {
            "embeddings": EXPERIMENT["embeddings"]
        }
        return write_file(tmp_path / "fruit.yaml", json.dumps(experiment))

    def use_case(path: Path) -> None:
        prepared = prepare_experiment(plan_experiment(path))
        assert prepared.benchmark.runs.exists()
        assert prepared.benchmark.mapping.status in ("resolved", "partial")

    import_each(use_case, write, models=(Benchmark, Mapping, Collection, Document, Dataset, DatasetVersion))
