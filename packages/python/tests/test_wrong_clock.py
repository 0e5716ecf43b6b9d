"""The clock of this machine is wrong: it slept, or takes local time for UTC. Services and chain have the right time."""

from __future__ import annotations

import time
from typing import Any

import pytest
from eth_account.signers.local import LocalAccount

from agent_trading_service import Client, ClockWarning, UntrustedQuoteError
from agent_trading_service.deadlines import Clocks, Judged, judge_deadline

from .conftest import Service

HOUR, DAY = 3_600, 86_400
DIRECTIONS = [("ahead", HOUR), ("behind", -HOUR)]


def judge(primary_type: str, difference: int, *, lifetime: int = 600, is_from_node: bool = False) -> Judged:
    """Judges what a service suggests whose clock is behind ours by `difference`."""
    now = int(time.time())
    server_time = now - difference
    clocks = Clocks(now, is_from_node, str(server_time), 900)
    return judge_deadline(str(server_time + lifetime), primary_type, clocks)


@pytest.mark.parametrize(("direction", "seconds"), DIRECTIONS)
@pytest.mark.parametrize("primary_type", ["ReducePosition", "StopBuying", "CloseAll"])
def test_what_reduces_risk_passes_with_a_warning(primary_type: str, direction: str, seconds: int) -> None:
    judged = judge(primary_type, seconds)
    assert judged.expected is None
    assert judged.warning is not None
    assert f"this machine is 1 h 0 min {direction}." in judged.warning
    assert judged.seconds_ahead == max(0, seconds)


@pytest.mark.parametrize(("direction", "seconds"), DIRECTIONS)
@pytest.mark.parametrize("primary_type", ["OpenPosition", "UpdateExitLadder", "CancelOrder", "SetMandate"])
def test_what_may_raise_risk_is_refused_with_both_clocks(primary_type: str, direction: str, seconds: int) -> None:
    judged = judge(primary_type, seconds)
    assert judged.expected is not None
    assert judged.remedy is not None
    assert f"this machine is 1 h 0 min {direction}." in judged.remedy
    assert "rpc_url" in judged.remedy


@pytest.mark.parametrize(
    "judged",
    [
        judge("ReducePosition", -DAY - HOUR),
        judge("ReducePosition", -HOUR, lifetime=DAY),
        judge("ReducePosition", 0, lifetime=DAY),
        judge("ReducePosition", -HOUR, is_from_node=True),
        judge_deadline(str(int(time.time()) + HOUR), "ReducePosition", Clocks(int(time.time()), False, "soon", 900)),
        judge_deadline(None, "ReducePosition", Clocks(int(time.time()), False, str(int(time.time()) + HOUR), 900)),
    ],
    ids=["days apart", "far by its own clock", "far", "node", "no clock", "no deadline"],
)
def test_no_clock_of_a_service_excuses_another_deadline(judged: Judged) -> None:
    assert judged.expected is not None
    assert judged.warning is None


@pytest.mark.long
@pytest.mark.parametrize(("direction", "seconds"), DIRECTIONS)
def test_a_position_is_closed_and_none_is_opened(
    service: Service, account: LocalAccount, monkeypatch: pytest.MonkeyPatch, direction: str, seconds: int
) -> None:
    agent_id = service.register(account)
    right_time = time.time
    with Client(service.url, account=account, pins=service.pins) as client:
        agent: Any = client.agent(agent_id)
        position_id = agent.open("NVDA", usdc="50", stop="8%")["positionId"]
        monkeypatch.setattr(time, "time", lambda: right_time() + seconds)
        with pytest.raises(UntrustedQuoteError) as refused:
            agent.add(position_id, usdc="10")
        assert refused.value.code == "QUOTE_DEADLINE_MISMATCH"
        assert direction in str(refused.value.remedy)
        with pytest.warns(ClockWarning, match=direction):
            assert agent.close(position_id)["positionId"] == position_id
        with pytest.warns(ClockWarning, match=direction):
            client.owner(agent_id).stop()
