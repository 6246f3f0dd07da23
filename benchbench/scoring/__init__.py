"""Scoring files: `benchbench score`, which needs neither a database nor Django."""
