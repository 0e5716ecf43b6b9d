"""
One agent of the fault harness (`npm run faults -- --client python`): registers, trades, and signs again for a goal only
after an error that says nothing was done. The harness forwards its requests, and is told each message before its post.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
from eth_account import Account as Keys

from agent_trading_service import Agent, AgentTradingError, Client, ExitRule, Submission, UnknownOutcomeError

Receipt = dict[str, Any]
MAX_TRIES = 6
KINDS = ["add", "add", "ladder", "ladder", "ladder", "reduce", "close"]
ORDER_SHARE = 0.3
"""Of goals that place an order, which waits for a price that never comes, or cancel it."""
SYMBOLS = os.environ["SYMBOLS"].split(",")
BASE = os.environ["BASE"]
NAME = os.environ["NAME"]
goal = NAME
deadlines = itertools.count(int(time.time()) + 3_600)


def tell(submission: Submission) -> None:
    told = {"path": submission.path, "body": submission.body, "digest": submission.digest, "goal": goal}
    httpx.post(f"{BASE}/harness/submission", json=told, timeout=30).raise_for_status()


def reach(client: Client, first: Callable[[], Receipt]) -> Receipt | None:
    """Tries until the goal is reached. An unknown outcome is resumed, never signed again. None if it gave up."""
    unknown: Submission | None = None
    attempt = 0
    while unknown is not None or attempt < MAX_TRIES:
        attempt += 1
        try:
            return first() if unknown is None else client.resume(unknown)
        except UnknownOutcomeError as error:
            unknown = error.submission
        except AgentTradingError:
            unknown = None
            time.sleep(0.2 * attempt)
    return None


def send(agent: Agent, kind: str, held: str | int, given: random.Random) -> Receipt:
    """Signs one message for a goal. `held` is the position or the order that it is about."""
    usdc = f"{given.randint(5, 40)}.{given.randint(10, 99)}"
    exits = [ExitRule(-given.randint(500, 3_000), 10_000)]
    deadline = next(deadlines)
    if kind == "open":
        return agent.open(given.choice(SYMBOLS), usdc=usdc, exits=exits, deadline=deadline)
    if kind == "order":
        return agent.orders.limit(given.choice(SYMBOLS), usdc=usdc, at=1, exits=exits, deadline=deadline)
    if kind == "cancel":
        return agent.orders.cancel(str(held), deadline=deadline)
    position = int(held)
    if kind == "add":
        return agent.add(position, usdc=usdc, deadline=deadline)
    if kind == "ladder":
        return agent.set_ladder(position, exits=exits, deadline=deadline)
    if kind == "close":
        return agent.close(position, deadline=deadline)
    return agent.reduce(position, 2_500, deadline=deadline)


def main() -> None:
    global goal
    chance = random.Random(NAME)
    account = Keys.from_key(chance.randbytes(32))
    with Client(
        BASE, account=account, request_timeout_seconds=8, retry_budget_seconds=10, on_submission=tell
    ) as client:
        registered = reach(client, lambda: client.register(name=goal, vault=os.environ["VAULT"]))
        httpx.post(f"{BASE}/harness/registered", json={}, timeout=30)
        if registered is None:
            return
        agent = client.agent(int(registered["agentId"]))
        position: int | None = None
        order: str | None = None
        for step in range(1, int(os.environ["INTENTS"])):
            goal = f"{NAME}/{step} {agent.agent_id}"
            kind = "open" if position is None else chance.choice(KINDS)
            if chance.random() < ORDER_SHARE:
                kind = "cancel" if order else "order"
            held = (order if kind == "cancel" else position) or 0
            receipt = reach(client, partial(send, agent, kind, held, random.Random(chance.random())))
            if kind in ("order", "cancel"):
                order = receipt["orderId"] if receipt and kind == "order" else None
            elif receipt is None or kind == "close":
                position = None  # continue with a new position
            elif kind == "open":
                position = int(receipt["positionId"])


if __name__ == "__main__":
    main()
