"""Commands of the embedded services: `remove` is for `make clean`, `keep` starts a keeper."""

import os
import sys

from benchbench import embedded
from benchbench.embedded import keeper


def main() -> None:
    match sys.argv[1:]:
        case ["keep", lock]:
            keeper.keep(int(lock))
        case ["remove"]:
            # The data folder of each test run is inside this checkout's own.
            for lock_file in sorted(embedded.data_dir().rglob("start.lock")):
                os.environ["BENCHBENCH_DATA_DIR"] = str(lock_file.parent)
                embedded.remove()
        case _:
            sys.exit("Usage: python -m benchbench.embedded remove")


try:
    main()
except embedded.EmbeddedError as error:
    sys.exit(str(error))
