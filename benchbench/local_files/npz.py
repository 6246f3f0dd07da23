"""NumPy's .npz archives without compression: written block by block, and read as views of their bytes."""

import io
import struct
import zipfile
from collections.abc import Iterable, Mapping
from math import prod
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

HEADER = struct.Struct("<4s22xHH")  # of a member: signature, and the sizes of its name and of its extra field
SIGNATURE = b"PK\x03\x04"
MAX_NPY_HEADER = 1024


class ArrayBlocks(NamedTuple):
    """An array that is written block by block, and never held as a whole."""

    dtype: type[np.generic]
    shape: tuple[int, ...]
    blocks: Iterable[NDArray[Any]]


def write_npz(out: IO[bytes], arrays: Mapping[str, ArrayBlocks]) -> None:
    """Write an archive that `numpy.load` and `view_npz` read. Equal arrays give equal bytes."""
    with zipfile.ZipFile(out, "w") as archive:
        for name, (dtype, shape, blocks) in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
                npy.write_array_header_1_0(member, header)
                for block in blocks:
                    member.write(np.ascontiguousarray(block, dtype).tobytes())


def view_npz(data: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """Return the arrays of an archive by name, as views of its bytes: a mapped file is not read."""
    arrays = {}
    start = 0
    while data[start : start + len(SIGNATURE)].tobytes() == SIGNATURE:
        name_start = start + HEADER.size
        _, name_size, extra_size = HEADER.unpack(data[start:name_start].tobytes())
        name = data[name_start : name_start + name_size].tobytes().decode().removesuffix(".npy")
        array_start = name_start + name_size + extra_size
        header = io.BytesIO(data[array_start : array_start + MAX_NPY_HEADER].tobytes())
        npy.read_magic(header)
        shape, _, dtype = npy.read_array_header_1_0(header)
        array_start += header.tell()
        start = array_start + dtype.itemsize * prod(shape)
        arrays[name] = data[array_start:start].view(dtype).reshape(shape)
    return arrays
