from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.files.samples import write_dataset, write_file


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Write one file."""

    def write(content: Any, name: str = "file.txt") -> Path:
        return write_file(tmp_path / name, content)

    return write


@pytest.fixture
def flowbaby(tmp_path: Path) -> Callable[..., Path]:
    """Write the Flowbaby dataset of `samples`; see `write_dataset`."""
    return partial(write_dataset, tmp_path / "golden-v1")
