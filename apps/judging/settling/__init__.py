"""State of a round: consensus and agreement of its judges, their progress, settled questions and the next items.

Imports the models, pools and orders; handing out, closing, pages, commands and the API import it.
"""
