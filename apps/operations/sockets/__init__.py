"""WebSockets on which staff watch operations: admission, the hint that something changed, the state that is sent.

Imports the models and handlers of this room; imported by the site's routing and by who sends hints.
"""
