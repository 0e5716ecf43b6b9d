"""Buys what rises and sells what falls back, one decision per symbol and bar.

pip install agent-trading-service
BASE=http://127.0.0.1:8787 ATS_AGENT=7 AGENT_KEY=0x… [RPC_URL=…] [BARS=…] python examples/python/momentum.py

A rehearsed market waits for its agents: there the program asks for the next bar, elsewhere a bar is a minute.
"""

import os
import time
from collections import defaultdict, deque
from decimal import Decimal

import httpx
from eth_account import Account

from agent_trading_service import AgentTradingError, Client

BASE = os.environ.get("BASE", "http://127.0.0.1:8787")
SYMBOLS = os.environ.get("SYMBOLS", "NVDA,AAPL,MSFT").split(",")
BARS = int(os.environ.get("BARS", "0"))  # 0 is no end
BAR_SECONDS = float(os.environ.get("BAR_SECONDS", "60"))
WINDOW = 12  # bars of the average
RISE = Decimal("1.004")  # above the average by this factor: buy


def next_bar() -> bool:
    """Returns False at the end of a rehearsal."""
    response = httpx.post(f"{BASE}/rehearsal/advance", json={}, timeout=60)
    if response.status_code == 404:  # a live market moves by itself
        time.sleep(BAR_SECONDS)
        return True
    return not response.raise_for_status().json()["isOver"]


account = Account.from_key(os.environ["AGENT_KEY"])
with Client(BASE, account=account, rpc_url=os.environ.get("RPC_URL")) as client:
    agent = client.agent(int(os.environ["ATS_AGENT"]))
    seen: defaultdict[str, deque[Decimal]] = defaultdict(lambda: deque(maxlen=WINDOW))
    bars = 0
    while True:
        held = {each["symbol"]: int(each["positionId"]) for each in client.list_positions(agent.agent_id)["positions"]}
        for symbol, price in client.get_prices(symbols=SYMBOLS)["prices"].items():
            now = Decimal(price["priceUsd"])
            average = sum(seen[symbol], Decimal(0)) / max(len(seen[symbol]), 1)
            seen[symbol].append(now)
            try:
                if symbol not in held and len(seen[symbol]) > 2 and not price["stale"] and now > average * RISE:
                    opened = agent.open(symbol, usdc=100, stop="3%", take="9%", note=f"{now} is above {average:.2f}")
                    print(f"opened {symbol} at {now} USD: position {opened['positionId']}", flush=True)
                elif symbol in held and now < average:
                    closed = agent.close(held[symbol], note=f"{now} is below {average:.2f}")
                    print(f"closed {symbol} at {now} USD: {closed['transactionHash']}", flush=True)
            except AgentTradingError as refusal:  # its code and remedy say what to change
                print(f"{symbol}: {refusal}", flush=True)
        bars += 1
        if bars == BARS or not next_bar():
            break
