"""Lists the tools of a service as an agent framework converts them: mcp_tools.py FRAMEWORK URL. Prints how many."""

import asyncio
import json
import sys
import urllib.request
from typing import Any

framework, url = sys.argv[1:]


def call(method: str, headers: dict[str, str]) -> tuple[Any, Any]:
    """Calls a method of the protocol. Returns its result and the headers of the response."""
    client = {"name": "listed", "version": "1"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client} if method == "initialize" else {}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    accepted = {"content-type": "application/json", "accept": "application/json, text/event-stream", **headers}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), accepted), timeout=60) as response:
        text = response.read().decode()
    data = next((line[5:] for line in text.splitlines() if line.startswith("data:")), text)
    return json.loads(data)["result"], response.headers


def listed() -> list[dict[str, Any]]:
    """Returns the tools as the protocol lists them."""
    _, headers = call("initialize", {})
    session = {"mcp-session-id": headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
    return list(call("tools/list", session)[0]["tools"])


async def google_genai() -> list[Any]:
    from google.genai import _mcp_utils
    from mcp.types import Tool

    converted = [_mcp_utils.mcp_to_gemini_tool(Tool.model_validate(tool)) for tool in listed()]
    return [declaration for tool in converted for declaration in tool.function_declarations]


async def openai_agents() -> list[Any]:
    from agents import Agent, RunContextWrapper
    from agents.mcp import MCPServerStreamableHttp, MCPUtil

    async with MCPServerStreamableHttp({"url": url, "timeout": 60}) as server:
        agent = Agent(name="reader", mcp_servers=[server])
        strict = True
        return await MCPUtil.get_function_tools(server, strict, RunContextWrapper(None), agent)


async def langchain() -> list[Any]:
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langchain_mcp_adapters.client import MultiServerMCPClient

    client = MultiServerMCPClient({"ats": {"transport": "streamable_http", "url": url}})
    return [convert_to_openai_tool(tool) for tool in await client.get_tools()]


async def pydantic_ai() -> list[Any]:
    from pydantic_ai.mcp import MCPToolset

    async with MCPToolset(url) as toolset:
        return list(await toolset.list_tools())


async def fastmcp() -> list[Any]:
    from fastmcp import Client

    async with Client(url) as client:
        return list(await client.list_tools())


async def smolagents() -> list[Any]:
    from smolagents import MCPClient
    from smolagents.models import get_tool_json_schema

    with MCPClient({"url": url, "transport": "streamable-http"}, structured_output=False) as tools:
        return [get_tool_json_schema(tool) for tool in tools]


async def llama_index() -> list[Any]:
    from llama_index.tools.mcp import BasicMCPClient, McpToolSpec

    tools = await McpToolSpec(client=BasicMCPClient(url)).to_tool_list_async()
    return [tool.metadata.to_openai_tool() for tool in tools]


async def strands() -> list[Any]:
    from mcp.client.streamable_http import streamablehttp_client
    from strands.tools.mcp import MCPClient

    with MCPClient(lambda: streamablehttp_client(url)) as client:
        return [tool.tool_spec for tool in client.list_tools_sync()]


async def google_adk() -> list[Any]:
    from google.adk.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams

    toolset = McpToolset(connection_params=StreamableHTTPConnectionParams(url=url))
    return [tool._get_declaration() for tool in await toolset.get_tools()]


async def agno() -> list[Any]:
    from agno.tools.mcp import MCPTools

    async with MCPTools(transport="streamable-http", url=url) as tools:
        return list(tools.functions.values())


converted = asyncio.run(globals()[framework.replace("-", "_")]())
assert len(converted) == len(listed()), f"{len(converted)} of {len(listed())} tools"
print(f"{len(converted)} tools")
