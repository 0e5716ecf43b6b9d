"""Runs the programs of examples/python as they are; of a model only the answers are scripted."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
from typing import Any

import pytest
from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from eth_account.signers.local import LocalAccount
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from agent_trading_service import AsyncClient, Client

from .conftest import ROOT, Service
from .lying_service import Json, LyingService

pytestmark = pytest.mark.long

EXAMPLES = ROOT / "examples/python"


def run(service: Service, account: LocalAccount, program: str, **more: str) -> str:
    agent_id = str(service.register(account))
    given = {
        "BASE": service.url,
        "ATS_AGENT": agent_id,
        "AGENT_KEY": "0x" + account.key.hex().removeprefix("0x"),
        **more,
    }
    done = subprocess.run(
        [sys.executable, EXAMPLES / program], env={**os.environ, **given}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_adapter_has_at_most_60_lines() -> None:
    programs = sorted(EXAMPLES.glob("*.py"))
    assert [program.name for program in programs] == ["mcp_loop.py", "momentum.py", "openai_agents.py"]
    assert [program.name for program in programs if len(program.read_text().splitlines()) > 60] == []


def test_a_scripted_model_reads_over_mcp_and_trades_through_the_client(service: Service, account: LocalAccount) -> None:
    lines = run(service, account, "mcp_loop.py", RPC_URL=service.deployment["rpcUrl"]).splitlines()
    assert [line.split()[0] for line in lines] == ["svc_get_risk_state", "open", "svc_get_agent_position", "close"]
    assert '"transactionHash": "0x' in lines[-1]


def test_the_momentum_agent_buys_what_rises_and_sells_what_falls_back(service: Service, account: LocalAccount) -> None:
    market = LyingService(service.url)
    told = ["100", "100", "100", "102", "95"]
    bar = 0

    def move(path: str, body: Json) -> Json | tuple[int, Json]:
        nonlocal bar
        if path == "/rehearsal/advance":
            bar += 1
            return 200, {"isOver": bar == len(told)}
        if path.startswith("/prices"):
            body["prices"]["NVDA"]["priceUsd"] = told[bar]
        return body

    market.change = move
    printed = run(service, account, "momentum.py", BASE=market.url, SYMBOLS="NVDA")
    market.stop()
    assert [line.split()[:4] for line in printed.splitlines()] == [
        ["opened", "NVDA", "at", "102"],
        ["closed", "NVDA", "at", "95"],
    ]


class ScriptedModel(Model):
    """Calls tools as a script says, then repeats the last result."""

    def __init__(self) -> None:
        self.results: list[Any] = []

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        outputs = [
            item["output"] for item in input if isinstance(item, dict) and item.get("type") == "function_call_output"
        ]
        self.results = outputs
        calls: list[tuple[str, Any]] = [
            ("risk_state", {}),
            ("open_position", {"symbol": "NVDA", "usdc": "1000000", "stop": "8%", "note": "too much"}),
            ("open_position", {"symbol": "NVDA", "usdc": "50", "stop": "8%", "note": "a small try"}),
            ("positions", {}),
        ]
        step = len(outputs)
        if step < len(calls):
            name, given = calls[step]
            call = ResponseFunctionToolCall(
                arguments=json.dumps(given), call_id=str(step), name=name, type="function_call"
            )
            return ModelResponse([call], Usage(), None)
        text = ResponseOutputText(text="done", type="output_text", annotations=[])
        message = ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse([message], Usage(), None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def test_the_openai_agents_sdk_trades_through_tools_and_reads_refusals(service: Service, account: LocalAccount) -> None:
    agent_id = service.register(account)
    spec = importlib.util.spec_from_file_location("openai_agents", EXAMPLES / "openai_agents.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    set_tracing_disabled(True)
    model = ScriptedModel()

    async def trade() -> None:
        async with AsyncClient(service.url, account=account, pins=service.pins) as client:
            trader: Agent[Any] = Agent(name="trader", tools=module.tools_of(client, agent_id), model=model)
            assert (await Runner.run(trader, "Buy a little.")).final_output == "done"

    asyncio.run(trade())
    assert model.results[1].startswith("CHECKS_FAILED")
    with Client(service.url) as client:
        [position] = client.list_positions(agent_id)["positions"]
    assert position["symbol"] == "NVDA"
