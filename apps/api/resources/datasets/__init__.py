"""Datasets over HTTP: their versions, queries and judgments, and the files of them; imported by the addresses."""
