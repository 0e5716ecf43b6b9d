"""Tools for the OpenAI Agents SDK. The model names trades; this program signs them, and keeps the key.

pip install agent-trading-service openai-agents
BASE=http://127.0.0.1:8787 ATS_AGENT=7 AGENT_KEY=0x… OPENAI_API_KEY=… python examples/python/openai_agents.py "Buy …"
"""

import asyncio
import os
import sys
from typing import Any

from agents import Agent, RunContextWrapper, Runner, function_tool
from eth_account import Account

from agent_trading_service import AgentTradingError, AsyncClient


def refusal(_: RunContextWrapper[Any], error: Exception) -> str:
    """Returns what the model reads of an error: code, sentence and remedy. Others end the run."""
    if not isinstance(error, AgentTradingError):
        raise error
    return str(error)


def tools_of(client: AsyncClient, agent_id: int) -> list[Any]:
    """Returns the tools of one agent. What they may do is limited by the mandate that its owner signed."""
    agent = client.agent(agent_id)

    @function_tool(failure_error_function=refusal)
    async def risk_state() -> Any:
        """Returns equity, limits and what is left of them. USDC in base units (6 decimals)."""
        return await client.get_risk_state(agent_id)

    @function_tool(failure_error_function=refusal)
    async def positions() -> Any:
        """Returns the open positions with their exit ladders."""
        return await client.list_positions(agent_id)

    @function_tool(failure_error_function=refusal)
    async def open_position(symbol: str, usdc: str, stop: str, note: str) -> Any:
        """Buys for `usdc` (such as "250.5") and sells everything at `stop` (such as "8%") below. `note` says why."""
        return await agent.open(symbol, usdc=usdc, stop=stop, note=note)

    @function_tool(failure_error_function=refusal)
    async def close_position(position_id: int, note: str) -> Any:
        """Sells a whole position. `note` says why, in public."""
        return await agent.close(position_id, note=note)

    return [risk_state, positions, open_position, close_position]


async def main(task: str) -> None:
    account = Account.from_key(os.environ["AGENT_KEY"])
    async with AsyncClient(os.environ["BASE"], account=account, rpc_url=os.environ.get("RPC_URL")) as client:
        trader = Agent(name="trader", tools=tools_of(client, int(os.environ["ATS_AGENT"])))
        print((await Runner.run(trader, task)).final_output)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
