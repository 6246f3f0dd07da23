"""Texts and lists of requests have a greatest length, and are read in time linear in it.

Forms and serializers are found by what they inherit, so a new one is tried too.
"""

import contextlib
import copy
import json

import pytest
from django import forms
from django.contrib.admin import site
from django.contrib.auth.models import User
from django.http import QueryDict
from django.test import RequestFactory
from rest_framework import serializers

import apps.api.urls  # noqa: F401 (which loads the resources)
from apps.api.fields import StrictSerializer, Text
from apps.api.resource import Operation, Resource
from benchbench.site.lengths import LONGEST_TEXT, LimitedForm
from benchbench.site.pages import PageForm
from benchbench.site.strict import StrictAdmin
from tests.growth import find_growth_faults, measure_pace, measure_seconds
from tests.hostile import UNITS, repeat

LONGEST = 2**16


def list_fields():
    """Return every field of every form of a page, by the names of form and field."""
    classes = [PageForm]
    for form in classes:
        classes += form.__subclasses__()
    return {f"{form.__name__}.{name}": field for form in classes for name, field in form.base_fields.items()}


@pytest.mark.thorough
@pytest.mark.django_db
@pytest.mark.parametrize("name", list_fields())
def test_a_field_takes_time_linear_in_its_text(name):
    field = copy.deepcopy(list_fields()[name])

    def feed(text):
        with contextlib.suppress(forms.ValidationError):
            field.clean([text] if isinstance(field, forms.MultipleChoiceField) else text)

    faults = find_growth_faults(feed, [lambda size, unit=unit: repeat(unit, size) for unit in UNITS], LONGEST_TEXT)
    assert faults == set()


def list_requests():
    """Return every serializer of a request or an upload of the API."""
    declared = [getattr(value, "operation", None) for kind in Resource.kinds for value in vars(kind).values()]
    operations = [each for each in declared if isinstance(each, Operation)]
    return sorted(
        {each for one in operations for each in (one.request, one.form) if each}, key=lambda each: each.__name__
    )


@pytest.mark.thorough
@pytest.mark.django_db
@pytest.mark.parametrize("serializer", list_requests())
def test_a_request_takes_time_linear_in_its_texts(serializer):
    names = list(serializer().fields)

    def feed(text):
        serializer(data=dict.fromkeys(names, text)).is_valid()
        serializer(data={name: {text: text} for name in names}).is_valid()
        serializer(data={name: [text] for name in names}).is_valid()

    faults = find_growth_faults(feed, [lambda size, unit=unit: repeat(unit, size) for unit in UNITS], LONGEST)
    assert faults == set()


@pytest.mark.thorough
@pytest.mark.django_db
@pytest.mark.parametrize("serializer", list_requests())
@pytest.mark.parametrize("item", ["1", '"a"', "{}", "[]", "1.5", "null"])
def test_a_request_with_long_lists_is_refused_at_once(serializer, item):
    names = list(serializer().fields)
    items = json.loads(f"[{','.join([item] * 200_000)}]")
    for name in names:
        seconds = measure_seconds(lambda name: serializer(data={name: items}).is_valid(), name, 1)
        assert seconds < 1 or seconds < measure_pace(), name


def test_every_text_of_a_request_has_a_greatest_length():
    class Both(StrictSerializer):
        text = Text(required=False)
        texts = serializers.ListField(child=Text(), required=False)

    for data in ({"text": "x" * (LONGEST_TEXT + 1)}, {"texts": ["x" * (LONGEST_TEXT + 1)]}, {"texts": ["x"] * 10_001}):
        read = Both(data=data)
        assert not read.is_valid()
    unlimited = []
    for each in list_requests():
        for name, field in each().fields.items():
            inner = getattr(field, "child", field)
            if isinstance(inner, serializers.CharField) and not isinstance(inner, Text):
                unlimited.append(f"{each.__name__}.{name}")
    assert unlimited == []


def test_a_form_refuses_long_texts_before_fields_read_them():
    class Form(LimitedForm, forms.Form):
        read = []
        text = forms.CharField(required=False)
        texts = forms.MultipleChoiceField(required=False, choices=[("a", "a")])

    def clean(value):
        raise AssertionError(len(value))

    query = QueryDict(mutable=True)
    query.setlist("texts", ["a", "x" * (LONGEST_TEXT + 1)])
    query["text"] = "x" * (LONGEST_TEXT + 1)
    form = Form(query)
    for field in form.fields.values():
        field.validators.append(clean)
    form.fields["texts"].valid_value = clean
    assert form.errors["text"] == ["This has 100,001 characters; at most 100,000 are read. Shorten it."]
    assert form.errors["texts"] == form.errors["text"]
    assert Form({"text": "x" * LONGEST_TEXT}).is_valid()


def test_every_form_of_the_site_is_limited():
    assert issubclass(PageForm, LimitedForm)
    tried = 0
    for admin in site._registry.values():
        if isinstance(admin, StrictAdmin) and (admin.fields or admin.fieldsets):
            request = RequestFactory().get("/")
            request.user = User(is_superuser=True)
            assert issubclass(admin.get_form(request), LimitedForm)
            tried += 1
    assert tried > 3
