"""Shared parts of the site's pages: forms, panels, the look of the admin, downloads, error pages.

Depends on no room. The interfaces of all rooms and the settings import it.
"""
