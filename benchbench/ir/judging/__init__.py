"""Judging with few grades: what to judge next, what is settled, how far judges agree, what a model's grades are worth.

Plain NumPy over pools and grades. Imported by the rooms that hold rounds and show verdicts.
"""
