"""Pages of judging: opening a round, grading, one's own grades, adjudication, the state of a round, closing it.

Each view parses a form or a message of the page, calls one use case and shows the result. Only interfaces import it.
"""
