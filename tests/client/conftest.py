"""A live site with a worker, and what a client brings to it."""

import json
from pathlib import Path

import pytest

from tests.client.fruit import questions
from tests.client.site import ada, library, token  # noqa: F401 (fixtures)


@pytest.fixture
def questions_file(tmp_path: Path) -> Path:
    file = tmp_path / "questions.json"
    file.write_text(json.dumps(questions()))
    return file
