"""What the TypeScript client does, the Python client does under the same names."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest

from agent_trading_service import AsyncClient, Client
from agent_trading_service.typed_data import SIGNING_TYPES

from .conftest import ROOT

SURFACE = """
import { ORDER_TYPES } from '@agent-trading-service/protocol/order-types'
import { signingTypes } from '@agent-trading-service/protocol/typed-data'
import { createClient } from './packages/client/src/index.ts'
const client = createClient({ baseUrl: 'http://127.0.0.1' })
const agent = client.agent('7')
const objects = { client, agent, orders: agent.orders, webhooks: agent.webhooks, owner: client.owner('7') }
const surface = Object.fromEntries(Object.entries(objects).map(([name, object]) => [name, Object.keys(object)]))
console.log(JSON.stringify({ surface, orderTypes: Object.keys(ORDER_TYPES), signingTypes }))
"""
NOT_IN_PYTHON = {
    # Here an object with `sign_typed_data` signs elsewhere, and awaits what it has to.
    "client": {"prepare_register", "take_nonce", "judge_deadline", "token_of_position", "now"},
    # An owner cancels with `client.owner(7)`.
    "agent": {"cancel"},
    # Each type of order is a method.
    "orders": {"place"},
    "webhooks": set(),
    "owner": set(),
}


@pytest.fixture(scope="module")
def typescript() -> dict[str, Any]:
    node = ROOT / "node_modules/.bin/node"
    done = subprocess.run(
        [node, "--input-type=module-typescript", "-e", SURFACE], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("create", [Client, AsyncClient])
def test_every_call_of_the_typescript_client_has_its_name_here(
    typescript: dict[str, Any], create: type[Client] | type[AsyncClient]
) -> None:
    client = create("http://127.0.0.1")
    agent = client.agent(7)
    own = {
        "client": client,
        "agent": agent,
        "orders": agent.orders,
        "webhooks": agent.webhooks,
        "owner": client.owner(7),
    }
    missing = {}
    for name, given in own.items():
        calls = {snake(call) for call in typescript["surface"][name]}
        # What is prepared is signed elsewhere.
        calls = {call for call in calls if not call.startswith("prepare_")} - NOT_IN_PYTHON[name]
        assert calls
        missing[name] = sorted(call for call in calls if not hasattr(given, call))
    assert missing == {name: [] for name in own}
    assert [kind for kind in typescript["orderTypes"] if not callable(getattr(agent.orders, snake(kind), None))] == []


def test_what_is_left_out_is_in_the_typescript_client(typescript: dict[str, Any]) -> None:
    for name, left_out in NOT_IN_PYTHON.items():
        assert left_out <= {snake(call) for call in typescript["surface"][name]}


def test_every_message_has_the_fields_of_the_typescript_client(typescript: dict[str, Any]) -> None:
    listed = {
        primary_type: [(field["name"], field["type"]) for field in fields]
        for primary_type, fields in typescript["signingTypes"].items()
    }
    assert listed == SIGNING_TYPES


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
