"""Admission of models by their names and files."""

import json
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from django.conf import settings

from benchbench.errors import BenchbenchError

# A name of a published model, "organisation/model" or "model", never a local path.
PUBLISHED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)?")
PREFIX = re.compile(r"[\w-]+:")  # a kind of encoder, or a provider
PICKLED = frozenset({".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib"})
MODULES = "modules.json"
OURS = "sentence_transformers."  # the package of the modules of sentence-transformers models


class ModelError(BenchbenchError):
    """A model cannot be used here. The message names the remedy."""

    code = "model"


def describe_name_problem(name: str) -> str:
    """Return why only commands may use this name of a model; "" for published names and the site's default.

    Does not check whether such a folder exists, which would reveal it to users. `availability` checks names with a
    prefix.
    """
    if PUBLISHED.fullmatch(name) or PREFIX.match(name) or name in ("", settings.BENCHBENCH_DEFAULT_MODEL):
        return ""
    return (
        f"{name[:80]!r} is not a model name such as sentence-transformers/all-MiniLM-L6-v2. Only commands accept a "
        "folder of the server."
    )


def list_unneeded(files: Iterable[str]) -> list[str]:
    """Return the files of a model that are code, or redundant weights: for other libraries, or pickled."""
    names = set(files)
    return [
        name
        for name in sorted(names)
        if name.startswith(("onnx/", "openvino/", "coreml/"))
        or name.endswith((".onnx", ".h5", ".msgpack", ".ot", ".tflite", ".py"))
        or (name.endswith("pytorch_model.bin") and name.replace("pytorch_model.bin", "model.safetensors") in names)
    ]


def require_safe(name: str, files: Iterable[str]) -> None:
    """Check that no weights exist only in pickled form: loading them may run code. Raises ModelError.

    `files` are paths relative to the model's folder. Pickled weights that also exist as safetensors are never read.
    """
    names = set(files)
    paths = [PurePosixPath(file) for file in names.difference(list_unneeded(names))]
    safe = {path.parent for path in paths if path.suffix == ".safetensors"}
    pickled = sorted(str(path) for path in paths if path.suffix in PICKLED and path.parent not in safe)
    if pickled:
        raise ModelError(
            f"The model {name!r} has weights that may run code when loaded ({pickled[0]}): use a model or a revision "
            "with safetensors.",
            field="model",
        )


def require_no_code(name: str, folder: Path) -> None:
    """Check that the model in `folder` has no own code or pickled weights, reading only JSON. Raises ModelError."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    code = any(file.suffix == ".py" for file in files)
    maps = (file for file in files if code and file.suffix == ".json" and "config" in file.name)
    has_own_code = any("auto_map" in content for content in map(_read, maps) if isinstance(content, dict))
    modules = _read(folder / MODULES) if (folder / MODULES).is_file() else []
    if has_own_code or any(not str(module.get("type", "")).startswith(OURS) for module in modules):
        raise ModelError(
            f"The model {name!r} has its own code, which BenchBench never runs: use a model without code.",
            field="model",
        )
    require_safe(name, (file.relative_to(folder).as_posix() for file in files))


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except ValueError:
        return {}  # the library reports the error
