"""Search engines that are asked over HTTP, as a file declares them; users never type an address.

Imports operations; imported by benchmarks and the rooms above.
"""
