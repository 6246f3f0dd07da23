"""The client of the REST API, for pipelines and scripts: docs/client.md.

It depends on httpx alone, so it runs on machines without PostgreSQL, Redis or a model.
"""

from benchbench.client.client import Client
from benchbench.client.connection import ClientError
from benchbench.client.pipeline import exit_status, pipeline

__all__ = ["Client", "ClientError", "exit_status", "pipeline"]
