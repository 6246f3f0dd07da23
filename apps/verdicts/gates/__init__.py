"""Gates: written rules that a run and its baseline must pass.

Imports the room of records; imported by schedules, views, the API and the command only.
"""
