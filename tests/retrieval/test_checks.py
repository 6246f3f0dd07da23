import pytest

from apps.retrieval.apps import check_default_model


@pytest.fixture
def checking(monkeypatch):
    monkeypatch.setattr("sys.argv", ["manage.py", "check"])


def test_a_model_that_is_here_is_no_matter(checking):
    assert check_default_model() == []


def test_a_model_that_is_missing_is_named_with_the_way_out(checking, settings):
    settings.BENCHBENCH_DEFAULT_MODEL = "nobody/nothing"
    (warning,) = check_default_model()
    assert "'nobody/nothing' is not on this machine" in warning.msg
    assert "BENCHBENCH_DEFAULT_MODEL" in warning.hint
