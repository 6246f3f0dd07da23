"""A server of the Model Context Protocol over standard input and output, with the tools of a client."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations

from benchbench.client.client import Client
from benchbench.client.connection import ClientError
from benchbench.client.tools import READS, Tools, list_tools

INSTRUCTIONS = (
    "BenchBench measures search. Read the verdict of a benchmark before its values: it says which runs are "
    "distinguishable. To measure something new, read a dataset for a mapping, preview a matrix, create the benchmark, "
    "start it and wait for it."
)


def serve(client: Client) -> None:
    """Answer requests from standard input until it ends."""
    build_server(client).run("stdio")


def build_server(client: Client) -> MCPServer:
    server = MCPServer("benchbench", instructions=INSTRUCTIONS, log_level="WARNING")
    for name, tool in list_tools(Tools(client)).items():
        annotations = ToolAnnotations(read_only_hint=name.startswith(READS), destructive_hint=False)
        server.tool(name, annotations=annotations, structured_output=False)(_explain_errors(tool))
    return server


def _explain_errors(tool: Callable[..., str]) -> Callable[..., str]:
    @wraps(tool)
    def call(*args: Any, **kwargs: Any) -> str:
        try:
            return tool(*args, **kwargs)
        except ClientError as error:
            details = [f"{field}: {' '.join(texts)}" for field, texts in error.errors.items()]
            raise ToolError("\n".join([str(error), *details])) from error

    return call
