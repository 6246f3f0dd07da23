"""Pages of judging: opening a round, grading, one's grades, adjudication, where a round stands, closing it.

Each view reads a form or a message of the page, calls one use case and shows what came of it. Only interfaces import
it.
"""
