"""Accounts: users, groups and their roles, access tokens, sign-ins, and the log of who did what.

Imports no room; the API imports it, which authenticates by these tokens and counts requests by these rates.
"""
