"""Runs the program of the README as written; only URLs, the id of the agent and the chain are those of the test."""

import re
from pathlib import Path

from eth_account.signers.local import LocalAccount

from agent_trading_service import Client

from .conftest import Service

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_the_program_of_the_readme_trades(service: Service, account: LocalAccount) -> None:
    agent_id = service.register(account)
    program = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    replaced = {
        "http://127.0.0.1:8787": service.url,
        "http://127.0.0.1:8545": service.deployment["rpcUrl"],
        "chain_id=31337": f"chain_id={service.deployment['chainId']}",
        "client.agent(7)": f"client.agent({agent_id})",
    }
    for shown, actual in replaced.items():
        assert program.count(shown) == 1
        program = program.replace(shown, actual)
    exec(compile(program, "README.md", "exec"), {"key": account.key})
    with Client(service.url) as client:
        closed = client.get(f"/agents/{agent_id}/closed-positions")["positions"]
    assert [position["symbol"] for position in closed] == ["NVDA"]
