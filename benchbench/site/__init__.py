"""Shared parts of the site's pages: forms, panels, the look of the admin, downloads, error pages.

Knows no room; imported by interfaces of all rooms and by the settings.
"""
