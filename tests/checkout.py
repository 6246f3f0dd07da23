"""The checkout, and the models of its rooms."""

from pathlib import Path

from django.apps import apps

CHECKOUT = Path(__file__).resolve().parent.parent


def own_models():
    return [model for model in apps.get_models() if model.__module__.startswith("apps.")]
