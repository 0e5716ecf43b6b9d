"""Runs the Python that the documentation shows, as it is written; only URLs and ids are those of the test."""

from __future__ import annotations

import contextlib
import html
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from eth_account import Account as Keys
from eth_account.signers.local import LocalAccount

from agent_trading_service import AgentTradingError, Client

from .conftest import ROOT, Service

PACKAGE = Path(__file__).parents[1]
DOCUMENT = json.loads((PACKAGE / "openapi.json").read_text())
OPERATIONS = [operation["operationId"] for path in DOCUMENT["paths"].values() for operation in path.values()]
SAMPLE_BASE = "https://api.example"


def python_below(document: str, heading: str) -> str:
    """Returns the only Python program of a section."""
    section = (ROOT / document).read_text().split(f"\n{heading}\n")[1].split("\n## ")[0]
    [program] = re.findall(r"```python\n(.*?)```", section.split("\n### ")[0], re.DOTALL)
    return str(program)


def run(program: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **variables}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def key_of(account: LocalAccount) -> str:
    return "0x" + account.key.hex().removeprefix("0x")


def test_a_python_developer_goes_from_nothing_to_a_first_trade(service: Service, account: LocalAccount) -> None:
    printed = run(
        python_below("docs/for-agents.md", "## A Python developer"),
        BASE=service.url,
        RPC_URL=service.deployment["rpcUrl"],
        AGENT_KEY=key_of(account),
        PAYER_KEY=service.deployment["accounts"]["payer"]["privateKey"],
    )
    assert re.fullmatch(r"agent \d+ opened position (\d+)\nclosed position \1\n", printed)


def test_the_program_of_the_projects_readme_trades(service: Service, account: LocalAccount) -> None:
    printed = run(
        python_below("README.md", "### You write Python"),
        ATS_URL=service.url,
        ATS_AGENT=str(service.register(account)),
        AGENT_KEY=key_of(account),
    )
    assert re.search(r"'transactionHash': '0x[0-9a-f]{64}'", printed)


def sample_of(service: Service, operation: str) -> str:
    """Returns the sample of an operation's page, with the URL of the test."""
    page = httpx.get(f"{service.url}/docs/operations/{operation}", timeout=30).raise_for_status().text
    found = re.search(r'id="panel-python"[^>]*><code>(.*?)</code>', page, re.DOTALL)
    assert found, operation
    return html.unescape(found[1]).replace(SAMPLE_BASE, service.url)


def executed(sample: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(sample, "sample", "exec"), {})
    return printed.getvalue()


RUN = [
    "getDiscovery",
    "listTokens",
    "getPrices",
    "getCandles",
    "getDepth",
    "getAgent",
    "getRiskState",
    "getAgentStats",
    "getTradeIntentQuote",
    "getOrderQuote",
    "submitTradeIntent",
    "submitOrder",
    "listPositions",
    "listOrders",
    "listTrades",
    "getVault",
    "getLeaderboard",
    "stopAgent",
]


def test_the_samples_of_the_reference_read_and_trade(
    service: Service, account: LocalAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent_id = service.register(account)
    monkeypatch.setenv("KEY", key_of(account))
    for operation in RUN:
        sample = sample_of(service, operation)
        for call in ("client.agent(1)", "client.owner(1)", '("1"'):
            sample = sample.replace(call, call.replace("1", str(agent_id)))
        assert "from agent_trading_service import Client" in sample
        assert executed(sample).startswith("{"), operation
    with Client(service.url) as client:
        [position] = client.list_positions(agent_id)["positions"]
        [order] = client.list_orders(agent_id)["orders"]
        assert (position["symbol"], order["condition"], order["price"]) == ("NVDA", "atOrBelow", "150")
        assert client.get_mandate(agent_id)["mandate"]["mode"] == "reduceOnly"


@pytest.mark.long
def test_every_sample_of_the_reference_is_a_program_with_the_right_types(service: Service, tmp_path: Path) -> None:
    key = key_of(Keys.create())
    for operation in OPERATIONS:
        sample = sample_of(service, operation)
        (tmp_path / f"{operation}.py").write_text(sample)
        if "agent_trading_service" in sample and "KEY" not in sample and "events" not in sample:
            # What was recorded elsewhere may be missing here, but the client has the call.
            with contextlib.suppress(AgentTradingError):
                executed(sample.replace(f'"{service.url}"', f'"{service.url}", retry_budget_seconds=1'))
    assert len(list(tmp_path.iterdir())) > 60
    options = ["--check-untyped-defs", "--no-incremental", "--scripts-are-modules", "--config-file="]
    environment = {**os.environ, "KEY": key, "MYPYPATH": str(PACKAGE / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *sorted(tmp_path.iterdir())],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
