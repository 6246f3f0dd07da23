"""The runs of a benchmark, best first: by slice, by version, with how far they are judged.

Imports the room of benchmarks and the words of configurations; imported by every other package of this room.
"""
