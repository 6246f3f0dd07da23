"""Dates as engineers sort them; Django finds this file through FORMAT_MODULE_PATH."""

DATE_FORMAT = "Y-m-d"
DATETIME_FORMAT = "Y-m-d H:i"
