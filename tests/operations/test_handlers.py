from django.utils.module_loading import import_string

from apps.operations import queueing
from apps.operations.handlers import HANDLERS, Handler


def test_every_dotted_name_leads_to_a_handler() -> None:
    for name in HANDLERS.values():
        assert Handler in type(import_string(name)).__mro__, name
    for name in queueing.JOBS:
        assert callable(import_string(name)), name
