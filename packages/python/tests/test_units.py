"""The spellings and units of the TypeScript client, from the vectors of test/unit/unit-vectors.test.ts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from eth_utils.address import to_checksum_address

from agent_trading_service import Client, ExitRule, ValidationError
from agent_trading_service.amounts import bps, digits, price_units, usdc_units
from agent_trading_service.effects import run
from agent_trading_service.intents import exits_query, ladder_of, loss_at_stop
from agent_trading_service.messages import FIGURE_UNITS, explained

from .conftest import ROOT
from .stub_service import StubService

VECTORS: dict[str, Any] = json.loads((ROOT / "test/unit/unit-vectors.json").read_text())
PARSERS: dict[str, Callable[[str], int | str]] = {
    "usdc": usdc_units,
    "price": price_units,
    "percent": lambda text: bps(text, "stop", most=9_999),
    "integer": lambda text: digits(text, "deadline"),
}
ACCEPTED = [(kind, text, value) for kind in PARSERS for text, value in VECTORS[kind]["accepted"].items()]
REFUSED = [(kind, text) for kind in PARSERS for text in VECTORS[kind]["refused"]]


@pytest.mark.parametrize(("kind", "text", "value"), ACCEPTED)
def test_a_spelling_has_the_value_that_typescript_gives_it(kind: str, text: str, value: str | int) -> None:
    assert str(PARSERS[kind](text)) == str(value)


@pytest.mark.parametrize(("kind", "text"), REFUSED)
def test_a_spelling_that_typescript_refuses_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ValidationError):
        PARSERS[kind](text)


@pytest.mark.parametrize("text", ["8", "2.5", "8.0"])
def test_a_percentage_needs_its_sign_because_an_int_is_in_basis_points(text: str) -> None:
    with pytest.raises(ValidationError, match="'8%'"):
        bps(text, "stop")


def rules(exits: list[dict[str, Any]]) -> list[ExitRule]:
    return [ExitRule(rule["triggerBps"], rule["exitBps"]) for rule in exits]


@pytest.mark.parametrize(("text", "exits"), VECTORS["exits"]["accepted"].items())
def test_a_ladder_is_written_as_typescript_writes_it(text: str, exits: list[dict[str, Any]]) -> None:
    assert exits_query(ladder_of(None, None, rules(exits))) == text


@pytest.mark.parametrize("exits", VECTORS["exits"]["refused"])
def test_a_ladder_that_typescript_refuses_is_refused(exits: list[dict[str, Any]]) -> None:
    with pytest.raises(ValidationError):
        ladder_of(None, None, rules(exits))


@pytest.mark.parametrize("vector", VECTORS["lossAtStop"])
def test_the_loss_at_the_stops_is_the_same_to_the_base_unit(vector: dict[str, Any]) -> None:
    exits = [ExitRule(*map(int, pair.split(":"))) for pair in vector["exits"].split(",")]
    loss = loss_at_stop(int(vector["usdcCostBasis"]), exits)
    assert (None if loss is None else str(loss)) == vector["lossUsdc"]


def test_the_figures_of_the_same_rules_have_units() -> None:
    assert VECTORS["figureUnits"] == FIGURE_UNITS


@pytest.mark.parametrize("vector", VECTORS["checks"])
def test_a_failed_check_is_explained_in_the_same_words(vector: dict[str, Any]) -> None:
    assert explained(vector) == vector["sentence"]


def test_a_symbol_in_any_case_is_the_token_of_that_name_and_an_unknown_one_names_those_of_the_vault() -> None:
    address = "0x00000000000000000000000000000000000000c1"
    every = [{"symbol": symbol, "address": address} for symbol in ("NVDA", "COIN")]
    answers = {
        "/tokens": {"tokens": every},
        "/agents/7": {"agent": {"vault": address}},
        f"/vaults/{address}/tokens": {"tokens": every[:1]},
    }
    with StubService(lambda path, _: (200, answers[path])) as stub, Client(stub.url) as client:
        deployment = client._session.deployment
        assert run(deployment.token_of("nvda", 7), client._http) == ("NVDA", to_checksum_address(address))
        with pytest.raises(ValidationError, match=r"Use one of NVDA, which the vault of agent 7 accepts\.$"):
            run(deployment.token_of("NVDAA", 7), client._http)
