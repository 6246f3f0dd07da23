"""Reading files and bodies of users: JSON and YAML without surprises, objects as records, the kinds of values.

Knows no room and no framework; imported by whatever reads input.
"""
