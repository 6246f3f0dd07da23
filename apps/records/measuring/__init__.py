"""Measuring of stored rankings on a dataset version, and reading the values.

Nothing here searches. Imports the models and plans; imported by everything that shows or checks values.
"""
