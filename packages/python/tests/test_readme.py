"""Runs the program of the README as written; only URLs, the id of the agent and the chain are those of the test."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from eth_account.signers.local import LocalAccount

from agent_trading_service import Client

from .conftest import Service

PACKAGE = Path(__file__).parents[1]
README = (PACKAGE / "README.md").read_text()


def program_for(service: Service, agent_id: int) -> str:
    """Returns the program of the README with the URLs, the agent and the chain of the test."""
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
    return str(program)


def assert_closed(service: Service, agent_id: int) -> None:
    with Client(service.url) as client:
        closed = client.list_closed_positions(agent_id)["positions"]
    assert [position["symbol"] for position in closed] == ["NVDA"]


def test_the_program_of_the_readme_trades(service: Service, account: LocalAccount) -> None:
    agent_id = service.register(account)
    exec(compile(program_for(service, agent_id), "README.md", "exec"), {"key": account.key})
    assert_closed(service, agent_id)


@pytest.mark.long
def test_the_packed_wheel_trades_in_an_empty_environment(
    service: Service, account: LocalAccount, tmp_path: Path
) -> None:
    def run(*command: str | Path, cwd: Path = tmp_path) -> None:
        subprocess.run(command, check=True, cwd=cwd)

    run(sys.executable, "-m", "hatchling", "build", "-d", tmp_path, cwd=PACKAGE)
    [source], [wheel] = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.whl")
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path)
    # Outside the repository, where only the archive says what the API is.
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "again", cwd=tmp_path / folder_of(source))
    [again] = (tmp_path / folder_of(source) / "again").glob("*.whl")
    assert files_of(again) == files_of(wheel)
    assert {"agent_trading_service/generated/models.py", "agent_trading_service/py.typed"} <= files_of(wheel)

    environment = tmp_path / "empty"
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run(sys.executable, "-m", "venv", "--without-pip", environment)
    run(sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python, wheel)
    agent_id = service.register(account)
    program = tmp_path / "program.py"
    program.write_text(f"key = '{account.key.hex()}'\n{program_for(service, agent_id)}")
    run(python, program)
    assert_closed(service, agent_id)


def folder_of(source: Path) -> str:
    return source.name.removesuffix(".tar.gz")


def files_of(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}
