"""The official MCP SDK for Python trades through the tools of the service; eth-account signs."""

import asyncio
from typing import Any

import pytest
from eth_account.signers.local import LocalAccount
from mcp import Client as McpClient

from .conftest import Service

pytestmark = pytest.mark.long

Json = dict[str, Any]


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28", "auto"])
def test_the_official_sdk_trades_through_tools_alone(service: Service, account: LocalAccount, mode: str) -> None:
    agent_id = str(service.register(account))

    async def trade() -> None:
        async with McpClient(f"{service.url}/mcp?agentId={agent_id}", mode=mode) as client:

            async def call(name: str, **given: Any) -> Json:
                result = await client.call_tool(name, given)
                assert not result.is_error, result.content
                assert isinstance(result.structured_content, dict)
                return result.structured_content

            async def submit(kind: str, **asked: Any) -> Json:
                quote = await call(f"svc_get_{kind}_intent_quote", detail="full", **asked)
                signature = "0x" + account.sign_typed_data(full_message=quote["typedData"]).signature.hex()
                return await call(f"svc_submit_{kind}_intent", agentId=agent_id, signature=signature, **quote["body"])

            listed = {tool.name for tool in (await client.list_tools()).tools}
            assert "svc_submit_trade_intent" in listed
            assert (await call("svc_whoami"))["signer"] == account.address
            exits = [{"triggerBps": -800, "exitBps": 10_000}]
            opened = await submit("trade", symbol="NVDA", usdcAmount="50", exits=exits)
            await submit("reduce", positionId=opened["positionId"], exitBps=10_000)
            assert (await call("svc_get_agent_positions"))["positions"] == []
            refused = await client.call_tool("svc_get_agent", {"agentId": "999999"})
            assert refused.is_error

    asyncio.run(trade())
