"""Search engines that are asked over HTTP, as a file declares them; users never type an address.

Imports operations; imported by records and the rooms above.
"""

from benchbench.process import ProcessState

process = ProcessState()
