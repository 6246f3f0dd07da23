"""Models that are let in: by which names, and with which files."""

import json
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from django.conf import settings

from benchbench.errors import BenchbenchError

# A name under which models are published, "organisation/model", or "model" alone; and not a path of this machine.
PUBLISHED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)?")
PREFIX = re.compile(r"[\w-]+:")  # of a kind of encoder, or of a provider
PICKLED = frozenset({".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib"})
MODULES = "modules.json"
OURS = "sentence_transformers."  # where the modules of a model of sentence-transformers are


class ModelError(BenchbenchError):
    """A model that cannot be used here; the sentence says what to do."""

    code = "model"


def no_name(name: str) -> str:
    """Say why nobody but a command may name a model so; "" for a published name and for the site's default.

    Whether there is such a folder is not looked up: the answer would tell. Of a name with a prefix `availability` says
    whether it is known.
    """
    if PUBLISHED.fullmatch(name) or PREFIX.match(name) or name in ("", settings.BENCHBENCH_DEFAULT_MODEL):
        return ""
    return (
        f"{name[:80]!r} is not the name of a model, as in sentence-transformers/all-MiniLM-L6-v2: folders of the "
        "server are named by commands only."
    )


def not_needed(files: Iterable[str]) -> list[str]:
    """Return those of a model's files that are code, or its weights once more, for other libraries or pickled."""
    names = set(files)
    return [
        name
        for name in sorted(names)
        if name.startswith(("onnx/", "openvino/", "coreml/"))
        or name.endswith((".onnx", ".h5", ".msgpack", ".ot", ".tflite", ".py"))
        or (name.endswith("pytorch_model.bin") and name.replace("pytorch_model.bin", "model.safetensors") in names)
    ]


def require_safe(name: str, files: Iterable[str]) -> None:
    """Raise ModelError for weights that are pickled alone: to read them may run what somebody put there.

    `files` are the paths of a model, within it. What has a twin in safetensors is never read.
    """
    names = set(files)
    paths = [PurePosixPath(file) for file in names.difference(not_needed(names))]
    safe = {path.parent for path in paths if path.suffix == ".safetensors"}
    pickled = sorted(str(path) for path in paths if path.suffix in PICKLED and path.parent not in safe)
    if pickled:
        raise ModelError(
            f"The model {name!r} has weights that may run code when they are read ({pickled[0]}): use one, or a "
            "revision of it, that has them as safetensors.",
            field="model",
        )


def require_no_code(name: str, folder: Path) -> None:
    """Raise ModelError for a model in `folder` that brings code of its own, or pickled weights; read its JSON alone."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    code = any(file.suffix == ".py" for file in files)
    maps = (file for file in files if code and file.suffix == ".json" and "config" in file.name)
    own = any("auto_map" in content for content in map(_read, maps) if isinstance(content, dict))
    modules = _read(folder / MODULES) if (folder / MODULES).is_file() else []
    if own or any(not str(module.get("type", "")).startswith(OURS) for module in modules):
        raise ModelError(
            f"The model {name!r} brings code of its own, which is never run here: use a model without.", field="model"
        )
    require_safe(name, (file.relative_to(folder).as_posix() for file in files))


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except ValueError:
        return {}  # the library says what is wrong with it
