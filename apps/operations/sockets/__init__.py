"""WebSockets on which staff watch operations: who may listen, the hint that something moved, the state that is sent.

Imports the models and handlers of this room; imported by the site's routing and by who sends hints.
"""
