"""Reading files and bodies of users: JSON and YAML without surprises, objects key by key, the kinds of values.

Knows no room and no framework; imported by whatever reads input.
"""
