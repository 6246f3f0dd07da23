"""Formats of dates on pages, by language: `FORMAT_MODULE_PATH`."""
