"""Matrices and plans: the axes, the configurations that they define, and the distinct stages of these.

Plain Python. Modules that define, run or describe configurations import it.
"""
