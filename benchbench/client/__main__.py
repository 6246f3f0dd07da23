import sys

from benchbench.busy import open_outputs
from benchbench.client.commands import COMMANDS, main

open_outputs()
if not sys.argv[1:] or sys.argv[1] not in COMMANDS:
    sys.exit(f"usage: python -m benchbench.client {{{','.join(COMMANDS)}}} [OPTIONS]")
sys.exit(main(sys.argv[1:], program="python -m benchbench.client"))
