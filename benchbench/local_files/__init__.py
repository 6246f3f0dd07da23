"""Files of this machine: written whole or not at all, sealed with a checksum, packed.

Depends on no room. Modules that store vectors or write results import it.
"""
