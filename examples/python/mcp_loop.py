"""The loop of a model over MCP tools. The model here is a script: replace `next_call` with a real one. The key stays in
this program and never reaches the model: it names trades, and the client compares, signs and submits.

pip install agent-trading-service mcp
BASE=http://127.0.0.1:8787 ATS_AGENT=7 AGENT_KEY=0x… [RPC_URL=…] python examples/python/mcp_loop.py
"""

import asyncio
import json
import os
from typing import Any

from eth_account import Account
from mcp import Client as McpClient

from agent_trading_service import AgentTradingError, AsyncClient

BASE = os.environ.get("BASE", "http://127.0.0.1:8787")
AGENT = os.environ["ATS_AGENT"]


def next_call(history: list[tuple[str, Any]]) -> tuple[str, dict[str, Any]] | None:
    """What a model would do: reads the results so far and names the next call; None when it is done."""
    if not history:
        return "svc_get_risk_state", {"agentId": AGENT}
    tool, output = history[-1]
    if tool == "svc_get_risk_state":
        return "open", {"symbol": "NVDA", "usdc": "100", "stop": "8%"}
    if tool == "open":
        return "svc_get_agent_position", {"agentId": AGENT, "positionId": output["positionId"]}
    if tool == "svc_get_agent_position":
        return "close", {"position_id": int(output["position"]["positionId"])}
    return None


async def main() -> None:
    account = Account.from_key(os.environ["AGENT_KEY"])
    async with (
        AsyncClient(BASE, account=account, rpc_url=os.environ.get("RPC_URL")) as service,
        McpClient(f"{BASE}/mcp") as mcp,
    ):
        agent = service.agent(int(AGENT))
        # The tools that sign. Every other tool is the service's own and only reads.
        signing: dict[str, Any] = {"open": agent.open, "close": agent.close}
        history: list[tuple[str, Any]] = []
        while (call := next_call(history)) is not None:
            tool, given = call
            try:
                output = await signing[tool](**given) if tool in signing else await read(mcp, tool, given)
            except AgentTradingError as refusal:  # a result too: it tells the model what to change
                output = {"error": str(refusal)}
            history.append((tool, output))
            print(f"{tool} {json.dumps(given)} -> {json.dumps(output)[:160]}")


async def read(mcp: McpClient, tool: str, given: dict[str, Any]) -> Any:
    return (await mcp.call_tool(tool, given)).structured_content


asyncio.run(main())
