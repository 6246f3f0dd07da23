"""Language models on servers that the settings name: asked, retried, and their answers kept.

Imports models; `search`, availability and building import `asking`. A new kind of server copies its sibling and joins
`KINDS` in `servers`.
"""
