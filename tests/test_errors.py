"""What is stored and shown of an error."""

import pytest

from benchbench.errors import BenchbenchError, told


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (BenchbenchError("The model './mine' is not here."), "The model './mine' is not here."),
        (OSError(28, "No space left", "/srv/site/vectors/7.bin"), "OSError: [Errno 28] No space left: '…/7.bin'"),
        (
            ValueError("see https://example.org/a/b for /srv/hub/x.json"),
            "ValueError: see https://example.org/a/b for …/x.json",
        ),
        (ValueError("1/2 of a/b"), "ValueError: 1/2 of a/b"),
    ],
)
def test_it_is_told_without_the_folders_of_the_server(error: Exception, said: str) -> None:
    assert told(error) == said
