"""Files of this machine: written whole or not at all, sealed with a checksum, packed.

Knows no room; imported by what keeps vectors and by what writes results.
"""
