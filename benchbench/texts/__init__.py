"""Texts of others: made fit to be stored, and searched for secrets."""
