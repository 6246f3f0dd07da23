"""Who asks, what they may do, and how often: tokens, sign-ins, permissions, throttles.

Imports the models of this room; imported by its endpoints and the site's routing.
"""
