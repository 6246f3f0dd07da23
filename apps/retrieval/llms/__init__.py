"""Language models on servers named in the settings: requests, retries and cached answers.

Imports models; `search`, availability and building import `asking`. A new kind of server copies its sibling and joins
`KINDS` in `servers`.
"""
