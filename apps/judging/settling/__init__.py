"""State of a round: the consensus and agreement of its judges, their progress, what is settled and what comes next.

Imports the models, pools and orders; imported by handing out, closing, pages, commands and the API.
"""
