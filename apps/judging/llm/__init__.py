"""Language models as judges: prompt, launching, calibration against people, verdicts that use a model's grades.

A model's grades are kept as such and never enter the truth, the median or what is told of people. Imports the models,
pools and consensus; imported by the tasks, pages, commands and the API.
"""
