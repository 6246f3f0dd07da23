import itertools
import json
import random

import pytest

from benchbench.ir.planning import matrix
from benchbench.ir.planning.ann import Ann, AnnError
from benchbench.ir.planning.axes import AXES, BY_KEY, normalize, run_label
from benchbench.ir.planning.configuration import CLASSIC, SEARCH_MODES
from benchbench.ir.planning.matrix import Configuration, Matrix, MatrixError


def labels(**data):
    return [run_label(configuration) for configuration in Matrix.parse(data).list_configurations()]


class TestConfigurations:
    def test_two_modes_rerankings_depths_and_thresholds_are_sixteen_runs(self):
        matrix = Matrix.parse(
            {
                "search_modes": ["dense", "hybrid"],
                "use_reranker": [False, True],
                "rerankers": ["tiny"],
                "top_k_values": [50, 100],
                "rrf_k_values": [60],
                "score_thresholds": [None, 0.5],
            }
        )
        assert len(matrix.list_configurations()) == 16
        assert len({configuration.hash for configuration in matrix.list_configurations()}) == 16
        assert len({run_label(configuration) for configuration in matrix.list_configurations()}) == 16

    def test_axis_without_effect_on_a_mode_adds_no_runs(self):
        hybrid = [f"hybrid · rrf {k} · top 100" for k in (40, 60, 80)]
        assert labels(search_modes=["dense", "hybrid"], rrf_k_values=[40, 60, 80]) == ["dense · top 100", *hybrid]

    def test_configurations_follow_axis_and_value_order(self):
        assert labels(
            search_modes=["sparse", "dense"], use_reranker=[True, False], rerankers=["b", "a"], top_k_values=[50, 20]
        ) == [
            "lexical · rerank b · top 50",
            "lexical · rerank b · top 20",
            "lexical · rerank a · top 50",
            "lexical · rerank a · top 20",
            "lexical · top 50",
            "lexical · top 20",
            "dense · rerank b · top 50",
            "dense · rerank b · top 20",
            "dense · rerank a · top 50",
            "dense · rerank a · top 20",
            "dense · top 50",
            "dense · top 20",
        ]

    def test_nothing_given_is_one_run_with_the_defaults(self):
        matrix = Matrix.parse({})
        assert (matrix.primary_k, matrix.k_values_for_metrics) == (10, (5, 10, 20))
        assert [run_label(configuration) for configuration in matrix.list_configurations()] == ["dense · top 100"]

    def test_equal_settings_of_a_search_have_one_name(self):
        declared = [{"method": "hnsw", "ef_search": 100}, "ivfflat( probes = 10, lists=100 )", "exact"]
        runs = ("dense · hnsw(ef_search=100)", "dense · ivfflat(probes=10)", "dense", "lexical")
        assert labels(ann=declared, search_modes=["dense", "sparse"]) == [f"{run} · top 100" for run in runs]

    def test_lexical_fusion_and_weight_axes_multiply_affected_modes_only(self):
        assert labels(
            search_modes=["dense", "sparse", "hybrid"],
            lexical=["bm25", "fts"],
            fusion=["rrf", "weighted"],
            weights=[[0.7, 0.3], [1, 3]],
            rrf_k_values=[40, 60],
        ) == [
            "dense · top 100",
            "lexical · top 100",
            "lexical · fts · top 100",
            "hybrid · rrf 40 · top 100",
            "hybrid · rrf 60 · top 100",
            "hybrid · weighted 0.7 + 0.3 · top 100",
            "hybrid · weighted 0.25 + 0.75 · top 100",
            "hybrid · fts · rrf 40 · top 100",
            "hybrid · fts · rrf 60 · top 100",
            "hybrid · fts · weighted 0.7 + 0.3 · top 100",
            "hybrid · fts · weighted 0.25 + 0.75 · top 100",
        ]

    def test_weighted_fusion_defaults_to_equal_weights(self):
        assert labels(search_modes=["hybrid"], fusion=["weighted"], weights=[None, [2, 2]]) == [
            "hybrid · weighted 0.5 + 0.5 · top 100"
        ]

    def test_every_index_is_a_run(self):
        assert labels(indexes=["minilm", "e5"]) == ["minilm · dense · top 100", "e5 · dense · top 100"]


@pytest.mark.parametrize("number", ["1_0", "\uff11\uff10", "\u0661\u0660"])
def test_numbers_of_texts_have_ascii_digits(number):
    """Python reads these as 10."""
    with pytest.raises(AnnError, match="is not a whole number"):
        Ann.parse(f"hnsw(ef_search={number})")
    for key in ("top_k_values", "candidates", "weights", "score_thresholds", "filter_shares", "rates"):
        with pytest.raises(ValueError, match=number):
            BY_KEY[key].kind.read(f"{number}:1" if key == "weights" else number)


def test_primary_k_is_always_among_the_cutoffs_which_ascend():
    assert Matrix.parse({"k_values_for_metrics": [20, 1], "primary_k": 3}).k_values_for_metrics == (1, 3, 20)


def test_it_reads_back_from_json():
    matrix = Matrix.parse(
        {
            "search_modes": ["hybrid", "dense"],
            "candidates": [None, 500],
            "score_thresholds": [0.5],
            "ann": [{"method": "hnsw", "storage": "binary"}],
            "weights": [None, [1, 2]],
        }
    )
    assert Matrix.parse(json.loads(json.dumps(matrix.as_dict()))) == matrix


class TestErrors:
    @pytest.mark.parametrize(
        ("data", "field", "sentence"),
        [
            ({"search_mode": ["dense"]}, "search_mode", 'no key "search_mode"; did you mean search_modes?'),
            ({"colour": ["red"]}, "colour", "choose one of primary_k, k_values_for_metrics, indexes"),
            ({"top_k_values": []}, "top_k_values", "top_k_values: the list is empty"),
            ({"search_modes": "dense"}, "search_modes", 'search_modes: must be a list, not "dense"'),
            ({"search_modes": ["vector"]}, "search_modes", '"vector" is not one of "dense", "sparse", "hybrid"'),
            ({"top_k_values": [100, 100]}, "top_k_values", "top_k_values: 100 occurs more than once"),
            ({"score_thresholds": [0, 0.0]}, "score_thresholds", "0.0 occurs more than once"),
            ({"top_k_values": [True]}, "top_k_values", "top_k_values: true is not a whole number from 1 to 1000"),
            ({"top_k_values": [1001]}, "top_k_values", "1001 is not a whole number from 1 to 1000"),
            ({"top_k_values": [50.0]}, "top_k_values", "50.0 is not a whole number"),
            ({"k_values_for_metrics": [0]}, "k_values_for_metrics", "0 is not a whole number from 1 to 1000"),
            ({"k_values_for_metrics": ["5"]}, "k_values_for_metrics", '"5" is not a whole number'),
            ({"primary_k": None}, "primary_k", "primary_k: null is not a whole number from 1 to 1000"),
            ({"primary_k": [10]}, "primary_k", "primary_k: [10] is not a whole number"),
            ({"use_reranker": [1]}, "use_reranker", "1 is not one of true, false"),
            ({"rrf_k_values": [0]}, "rrf_k_values", "0 is not a whole number from 1 to 10000"),
            ({"score_thresholds": [1.5]}, "score_thresholds", "1.5 is not a number from 0 to 1, or null"),
            ({"score_thresholds": [float("nan")]}, "score_thresholds", "NaN is not a number from 0 to 1"),
            ({"score_thresholds": [True]}, "score_thresholds", "true is not a number from 0 to 1"),
            ({"candidates": [0]}, "candidates", "0 is not a whole number from 1 to 10000, or null"),
            ({"indexes": [" "]}, "indexes", 'indexes: " " is not a name'),
            ({"ann": ["flat"]}, "ann", 'ann: The method "flat" does not exist; choose one of exact, compressed, hnsw'),
            ({"ann": [7]}, "ann", "ann: 7 is not a setting such as hnsw(ef_search=100), or an object of it."),
            ({"ann": ["hnsw", "hnsw(m=16)"]}, "ann", 'ann: "hnsw(m=16)" occurs more than once'),
            ({"ann": ["hnsw", {"method": "hnsw"}]}, "ann", 'ann: {"method": "hnsw"} occurs more than once'),
            ({"lexical": ["bm42"]}, "lexical", '"bm42" is not an engine; choose one of bm25, fts'),
            ({"fusion": ["sum"]}, "fusion", 'fusion: "sum" is not one of "rrf", "weighted"'),
            ({"weights": [0.5]}, "weights", "weights: 0.5 is not two numbers, for dense and lexical, from 0 up"),
            ({"weights": [[0.5]]}, "weights", "weights: [0.5] is not two numbers"),
            ({"weights": [[0, 0]]}, "weights", "weights: [0, 0] is not two numbers"),
            ({"weights": [[-1, 2]]}, "weights", "weights: [-1, 2] is not two numbers"),
            ({"weights": [[True, 1]]}, "weights", "weights: [true, 1] is not two numbers"),
            ({"weights": [[float("inf"), 1]]}, "weights", "weights: [Infinity, 1] is not two numbers"),
            ({"weights": [[0.7, 0.3], [7, 3]]}, "weights", "weights: [7, 3] occurs more than once"),
            ({"search_modes": [{"a": 1}]}, "search_modes", 'search_modes: {"a": 1} is not one of'),
            (
                {"k_values_for_metrics": [10, 20], "top_k_values": [5]},
                "top_k_values",
                "top_k_values: 5 is less than the greatest k to measure at, 20",
            ),
            ({"k_values_for_metrics": [5], "top_k_values": [5]}, "top_k_values", "10 (primary_k is always one"),
            (
                {"use_reranker": [True], "rerankers": ["tiny"], "rerank_depths": [200]},
                "rerank_depths",
                "rerank_depths: 200 is more than the 100 candidates of a run with top k 100",
            ),
            ([], "matrix", "The matrix must be an object"),
        ],
    )
    def test_every_fault_is_a_sentence_that_names_its_key(self, data, field, sentence):
        with pytest.raises(MatrixError) as raised:
            Matrix.parse(data)
        assert raised.value.field == field
        assert sentence in raised.value.message
        assert raised.value.status == 400

    def test_a_reranker_that_no_run_uses_may_be_named(self):
        assert labels(rerankers=["tiny"]) == ["dense · top 100"]

    def test_a_reranker_that_is_not_named_is_late_interaction(self):
        matrix = Matrix.parse({"use_reranker": [True]})
        assert matrix.as_dict()["rerankers"] == ["late-interaction"]
        assert [run_label(run) for run in matrix.list_configurations()] == ["dense · rerank late-interaction · top 100"]
        labelled = Matrix.parse({"use_reranker": [True], "rerankers": ["late-interaction", "tiny", None]})
        assert len(labelled.list_configurations()) == 2
        assert labelled.list_configurations()[0].hash == matrix.list_configurations()[0].hash
        assert matrix.list_configurations()[0].as_dict().keys() == {"index", *CLASSIC}

    def test_values_per_list_and_runs_are_limited(self):
        with pytest.raises(MatrixError, match=r"2 allowed \(BENCHMARK_MAX_VALUES_PER_AXIS\)") as raised:
            Matrix.parse({"top_k_values": [50, 60, 70], "k_values_for_metrics": [5, 10]}, max_values=2)
        assert raised.value.field == "top_k_values"
        with pytest.raises(MatrixError, match="makes up to 4 runs; at most 3 are allowed") as raised:
            Matrix.parse({"search_modes": ["dense", "sparse"], "top_k_values": [50, 60]}, max_runs=3)
        assert raised.value.field == "matrix"

    def test_only_distinct_runs_count_against_the_limit(self):
        ranked = {"rrf_k_values": [1, 2, 3, 4]}
        assert len(Matrix.parse({"search_modes": ["dense"], **ranked}, max_runs=1).list_configurations()) == 1
        assert len(Matrix.parse({"search_modes": ["dense", "hybrid"], **ranked}, max_runs=5).list_configurations()) == 5
        with pytest.raises(MatrixError, match="makes up to 5 runs; at most 4 are allowed"):
            Matrix.parse({"search_modes": ["dense", "hybrid"], **ranked}, max_runs=4)

    def test_too_many_runs_are_refused_before_they_are_made(self, monkeypatch):
        created = []
        monkeypatch.setattr(matrix, "normalize", lambda run: created.append(run) or normalize(run))
        wide = {"top_k_values": [*range(100, 120)], "score_thresholds": [n / 20 for n in range(20)]}
        with pytest.raises(MatrixError, match="makes up to 400 runs; at most 200 are allowed"):
            Matrix.parse(wide, max_runs=200)
        assert len(created) <= 205
        with pytest.raises(MatrixError, match="has 160,000 combinations; at most 10,000 are allowed"):
            Matrix.parse(
                wide | {"search_modes": ["hybrid"], "rrf_k_values": [*range(1, 21)], "candidates": [*range(120, 140)]},
                max_runs=200,
            )
        assert len(created) <= 210

    @pytest.mark.parametrize("value", ["x" * 3000, {"method": "x" * 3000}, ["x" * 3000]])
    def test_long_value_is_refused_before_a_pattern_sees_it(self, value):
        for key in BY_KEY:
            with pytest.raises(MatrixError, match=f"{key}: a value has 3,0.* characters"):
                Matrix.parse({key: [value]})
        with pytest.raises(MatrixError, match="has a key of 3,000 characters"):
            Matrix.parse({"x" * 3000: [1]})

    def test_huge_matrix_is_rejected_without_expanding_it(self):
        wide = [*range(100, 120)]
        with pytest.raises(MatrixError, match="has 160,000 combinations") as raised:
            Matrix.parse(
                {
                    "search_modes": ["hybrid"],
                    "top_k_values": wide,
                    "candidates": wide,
                    "rrf_k_values": wide,
                    "score_thresholds": [n / 20 for n in range(20)],
                }
            )
        assert raised.value.field == "matrix"


CHOICES = {
    "indexes": ["a", "b"],
    "search_modes": list(SEARCH_MODES),
    "use_reranker": [True, False],
    "rerankers": ["tiny", "late-interaction"],
    "rerank_depths": [5, 100, None],
    "top_k_values": [100, 50],
    "candidates": [200, None, 100],
    "ann": ["hnsw", "exact"],
    "lexical": ["fts", "bm25"],
    "fusion": ["weighted", "rrf"],
    "weights": [[1, 3], None, [1, 1]],
    "score_thresholds": [0.5, None],
    "query": ["hyde", "as_asked", "rewrite"],
    "llms": ["ollama:llama3.2"],
    "engines": ["shop", "shop(boost=2)"],
    "filter_shares": [0.1, None],
}


def list_choices(axis):
    """Return values of an axis: those of CHOICES, or the default and the least number that it takes."""
    kinds = axis.kind.schema.get("anyOf", [axis.kind.schema])
    return CHOICES.get(axis.key) or [axis.default, *(kind["minimum"] for kind in kinds if "minimum" in kind)]


def expand_all(matrix):
    """Return the runs of a matrix by its definition: all combinations in normal form, each once."""
    combinations = itertools.product(*(matrix.axes[key] for key in BY_KEY))
    runs = (normalize(Configuration(**dict(zip(AXES, values, strict=True)))) for values in combinations)
    return list(dict.fromkeys(runs))


@pytest.mark.parametrize("seed", range(40))
def test_only_combinations_that_make_a_difference_are_made(seed):
    choices = {key: list_choices(BY_KEY[key]) for key in (*CHOICES, *(BY_KEY.keys() - CHOICES))}
    draw = random.Random(seed)
    varied = {"search_modes", "query", *draw.sample(sorted(choices), 6)}
    chosen = {key: draw.sample(values, len(values) if key in varied else 1) for key, values in choices.items()}
    axes = {key: tuple(itertools.chain(*map(BY_KEY[key].list_values, values))) for key, values in chosen.items()}
    matrix = Matrix(primary_k=5, k_values_for_metrics=(5,), axes=axes)
    runs = matrix.list_configurations()
    assert runs == expand_all(matrix)
    assert len(runs) <= matrix.count_combinations()
