"""Matrices and plans: the axes, the configurations that they spell out, and the distinct stages that those need.

Plain Python. Imported by whatever defines, runs or words configurations.
"""
