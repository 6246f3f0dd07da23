"""Formats of numbers and dates on the pages."""
