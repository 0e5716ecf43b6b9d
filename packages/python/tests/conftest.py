"""Starts the embedded chain and the service once for all tests, as `npm run dev` does."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account as Keys
from eth_account.signers.local import LocalAccount

from agent_trading_service import Client, Payer, Pins

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Service:
    url: str
    deployment: dict[str, Any]

    @property
    def pins(self) -> Pins:
        contracts = self.deployment["contracts"]
        return Pins(
            chain_id=self.deployment["chainId"],
            trade_router=contracts["TradeRouter"],
            agent_registry=contracts["AgentRegistry"],
            owner_controls=contracts["OwnerControls"],
            order_book=contracts["OrderBook"],
            vaults=list(self.deployment["vaults"].values()),
            tokens=self.deployment["tokens"],
        )

    @property
    def payer(self) -> Payer:
        key = self.deployment["accounts"]["payer"]["privateKey"]
        usdc = self.deployment["contracts"]["USDC"]
        return Payer(Keys.from_key(key), self.deployment["chainId"], usdc, max_amount=1_000_000)

    def register(self, account: LocalAccount) -> int:
        with Client(self.url, account=account, pins=self.pins) as client:
            receipt = client.register(
                name="python", metadata_uri="https://agents.example/python.json", payer=self.payer
            )
            return int(receipt["agentId"])


@pytest.fixture(scope="session")
def service() -> Iterator[Service]:
    binaries = ROOT / "node_modules/.bin"
    port, chain_port = free_port(), free_port()
    path = f"{binaries}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PORT": str(port), "CHAIN_PORT": str(chain_port)}
    process = subprocess.Popen(
        [binaries / "node", "scripts/dev.ts"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        printed = []
        assert process.stdout is not None
        for line in process.stdout:
            printed.append(line)
            if line.startswith("service"):
                break
        else:
            pytest.fail("".join(printed))
        deployment = json.loads((ROOT / ".devnet/deployment.json").read_text())
        yield Service(f"http://127.0.0.1:{port}", deployment)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=30)


@pytest.fixture
def account() -> LocalAccount:
    created: LocalAccount = Keys.create()
    return created


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])
