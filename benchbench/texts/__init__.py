"""Texts of others: made fit to be stored, searched for secrets, and divided into words."""
