"""Access to the API: tokens, sign-ins, permissions, throttles.

Imports the models of this room; imported by its endpoints and the site's routing.
"""
