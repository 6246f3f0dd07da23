"""Flowbaby's files: datasets and runs read, datasets written, results written, two summaries compared.

Plain Python. Imported by readers, writers, exporters and scoring.
"""
