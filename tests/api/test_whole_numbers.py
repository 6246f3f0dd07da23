"""5.0 is 5 in JSON: whole numbers may be stated as either, where that is exact."""

from typing import Any

import pytest
from rest_framework.exceptions import ValidationError

from apps.api.fields import StrictSerializer, Whole, valid
from apps.api.matrices import MatrixField
from apps.api.resources.gates import RunField


class Stated(StrictSerializer):
    whole = Whole(required=False)
    run = RunField(required=False)
    matrix = MatrixField(required=False)


@pytest.mark.parametrize(
    ("stated", "read"),
    [
        ({"whole": 5.0}, {"whole": 5}),
        ({"whole": -(2.0**53)}, {"whole": -(2**53)}),
        ({"run": 1.0}, {"run": 1}),
        (
            {"matrix": {"primary_k": 5.0, "candidates": [None, 40.0], "score_thresholds": [1.0]}},
            {"matrix": {"primary_k": 5, "candidates": [None, 40], "score_thresholds": [1.0]}},
        ),
    ],
)
def test_a_float_without_a_fraction_is_a_whole_number(stated: Any, read: Any) -> None:
    assert repr(dict(valid(Stated, stated))) == repr(read)


@pytest.mark.parametrize("value", [5.5, 2.0**53 + 2, "5", True, None, float("inf")])
@pytest.mark.parametrize("name", ["whole", "run"])
def test_other_values_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        valid(Stated, {name: value})
