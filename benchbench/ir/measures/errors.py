"""The error of a measure."""

from benchbench.errors import BenchbenchError


class MeasureError(BenchbenchError):
    """A text that names no measure, or a measure that cannot be computed of these judgments."""

    code = "measure"
