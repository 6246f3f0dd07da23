from importlib import import_module

from django.utils.module_loading import import_string

from apps.operations import queueing
from apps.operations.handlers import HANDLERS, Handler
from tests.faults.planting import POINTS


def test_every_dotted_name_leads_to_a_handler() -> None:
    for name in HANDLERS.values():
        assert Handler in type(import_string(name)).__mro__, name
    for name in queueing.JOBS:
        assert callable(import_string(name)), name


def test_every_point_at_which_faults_are_planted_is_in_the_code() -> None:
    for stage, point in POINTS.items():
        owner = import_module(point.module)
        for part in point.name.split("."):
            assert hasattr(owner, part), f"{stage}: {point.module} has no {point.name}"
            owner = getattr(owner, part)
