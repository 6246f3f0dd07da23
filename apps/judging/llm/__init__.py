"""Language models as judges: prompt, launching, calibration against people, verdicts that use a model's grades.

A model's grades are stored as such and never enter the truth, the median or figures about people. Imports the models,
pools and consensus; the tasks, pages, commands and the API import it.
"""
