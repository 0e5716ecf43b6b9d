"""What messages may name: from the pins, confirmed on chain where there is a node, else from the service."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote

from eth_utils.address import is_address, to_checksum_address
from eth_utils.crypto import keccak

from .arguments import Address, check_fields
from .effects import Core, Request, Response
from .errors import (
    AgentTradingError,
    NetworkError,
    NotFoundError,
    QuoteMismatch,
    UntrustedQuoteError,
    ValidationError,
)
from .proxies import PROXY_REMEDY, proxy_of, shown
from .transport import Transport
from .typed_data import Domain, ExitRule

T = TypeVar("T")

_DOMAIN_NAMES = {name: f"Service {name}" for name in ("TradeRouter", "AgentRegistry", "OwnerControls", "OrderBook")}
"""The names of the specification; a chain that is read with `rpc_url` may have others."""


@dataclass(frozen=True)
class Pins:
    """
    What the caller knows of the deployment and the service must agree with. What is not pinned is taken from the
    service's first answer and may not change after it.
    """

    chain_id: int | None = None
    trade_router: Address | None = None
    agent_registry: Address | None = None
    owner_controls: Address | None = None
    order_book: Address | None = None
    vaults: Sequence[Address] = ()
    """The vaults that messages may name; empty for any."""
    tokens: Mapping[str, Address] = field(default_factory=dict)
    """Token addresses by symbol. A symbol that is missing here is taken from the service."""

    def __post_init__(self) -> None:
        check_fields(self)


class Deployment:
    def __init__(self, transport: Transport, pins: Pins, rpc_url: str | None) -> None:
        self._transport = transport
        self._pins = pins
        self._node = Node(rpc_url) if rpc_url is not None else None
        self._memory: dict[str, Any] = {}

    def _once(self, key: str, read: Callable[[], Core[T]]) -> Core[T]:
        """Remembers the first answer; a failure is not remembered."""
        if key not in self._memory:
            answer = yield from read()
            self._memory.setdefault(key, answer)
        return self._memory[key]  # type: ignore[no-any-return]

    def _discovery(self) -> Core[dict[str, Any]]:
        return self._once("discovery", lambda: self._transport.get("/"))

    def chain_id(self) -> Core[int]:
        return self._once("chain id", self._read_chain_id)

    def _read_chain_id(self) -> Core[int]:
        expected = self._pins.chain_id
        if expected is None:
            expected = (yield from self._discovery())["chainId"]
        if expected is None:
            raise _missing("chain")
        if self._node:
            given = yield from self._node.chain_id()
            _assert_same("CHAIN_ID", [QuoteMismatch("chain id of rpc_url", expected, given)])
        return expected

    def domain_of(self, contract: str) -> Core[Domain]:
        """Returns the signing domain of a contract. With a node, the contract itself has to name it."""
        return self._once(f"domain {contract}", lambda: self._read_domain(contract))

    def _read_domain(self, contract: str) -> Core[Domain]:
        pinned = {
            "TradeRouter": self._pins.trade_router,
            "AgentRegistry": self._pins.agent_registry,
            "OwnerControls": self._pins.owner_controls,
            "OrderBook": self._pins.order_book,
        }[contract]
        address = pinned or (yield from self._discovery())["contracts"].get(contract)
        if address is None or not is_address(address):
            raise _missing(contract)
        chain_id = yield from self.chain_id()
        expected = Domain(_DOMAIN_NAMES[contract], "1", chain_id, to_checksum_address(address))
        if self._node is None:
            return expected
        given = yield from self._node.domain_of(expected.verifying_contract)
        facts = [
            QuoteMismatch(f"{name} of {contract}.eip712Domain()", getattr(expected, name), getattr(given, name))
            for name in ("chain_id", "verifying_contract", "version")
        ]
        _assert_same("CONTRACT", facts)
        return given

    def token_of(self, symbol: str, agent_id: int) -> Core[tuple[str, str]]:
        """Returns a symbol as its token spells it and its address, the same one for as long as the client lives."""
        return self._once(f"token {symbol}", lambda: self._read_token(symbol, agent_id))

    def _read_token(self, symbol: str, agent_id: int) -> Core[tuple[str, str]]:
        pinned = _find_symbol(list(self._pins.tokens.items()), symbol)
        if pinned is not None:
            return pinned[0], str(to_checksum_address(pinned[1]))
        tokens = (yield from self._transport.get("/tokens"))["tokens"]
        found = _find_symbol([(token["symbol"], token["address"]) for token in tokens], symbol)
        if found is None:
            # Others could not be bought either.
            vault = (yield from self._transport.get(f"/agents/{agent_id}"))["agent"]["vault"]
            accepted = (yield from self._transport.get(f"/vaults/{quote(str(vault), safe='')}/tokens"))["tokens"]
            symbols = ", ".join(token["symbol"] for token in accepted)
            raise ValidationError(
                "UNKNOWN_SYMBOL",
                f"There is no token with the symbol {symbol}.",
                remedy=f"Use one of {symbols}, which the vault of agent {agent_id} accepts.",
            )
        name, address = found
        token: tuple[str, str] = self._memory.setdefault(f"token {name}", (name, str(to_checksum_address(address))))
        return token

    def vault_of(self, agent_id: str) -> Core[str]:
        """Returns the vault of an agent. It has to be a pinned one, if vaults are pinned."""
        return self._once(f"vault of {agent_id}", lambda: self._read_vault_of(agent_id))

    def _read_vault_of(self, agent_id: str) -> Core[str]:
        agent = (yield from self._transport.get(f"/agents/{agent_id}"))["agent"]
        return self._allowed_vault(agent["vault"])

    def vault_by(self, vault: str) -> Core[str]:
        """Returns the address of a vault that is given by slug or address."""
        if is_address(vault):
            return self._allowed_vault(vault)
        if not vault:
            raise ValidationError("INVALID_REQUEST", "vault is empty; pass a slug such as 'genesis' or an address.")
        found = yield from self._transport.get(f"/vaults/{quote(vault, safe='')}")
        return self._allowed_vault(found["vault"]["contractAddress"])

    def _allowed_vault(self, given: str) -> str:
        vaults = self._pins.vaults
        if vaults and given.lower() not in [vault.lower() for vault in vaults]:
            mismatch = QuoteMismatch("vault", " or ".join(vaults), given)
            raise UntrustedQuoteError("QUOTE_VAULT_MISMATCH", [mismatch])
        return str(to_checksum_address(given))

    def nonce_of(self, contract: str, holder: int | str) -> Core[int | None]:
        """Returns a contract's next nonce for an agent id or an account; None without a node."""
        if self._node is None:
            return None
        domain = yield from self.domain_of(contract)
        return (yield from self._node.nonce_of(domain.verifying_contract, holder))

    def position_of(self, position_id: str) -> Core[tuple[int, list[ExitRule]] | None]:
        """Returns the cost of a position in USDC base units and its pending rules; None without a node."""
        if self._node is None:
            return None
        domain = yield from self.domain_of("TradeRouter")
        return (yield from self._node.position_of(domain.verifying_contract, int(position_id)))

    def now(self) -> Core[int]:
        """Returns the present in Unix seconds: the newest block's time, or this machine's without a node."""
        if self._node is None:
            return int(time.time())
        return (yield from self._node.now())


class Node:
    """A JSON-RPC node of the caller's choice."""

    def __init__(self, url: str) -> None:
        self._url = url

    def chain_id(self) -> Core[int]:
        return int((yield from self._request("eth_chainId", [])), 16)

    def now(self) -> Core[int]:
        return int((yield from self._request("eth_getBlockByNumber", ["latest", False]))["timestamp"], 16)

    def nonce_of(self, contract: str, holder: int | str) -> Core[int]:
        by_agent = isinstance(holder, int)
        argument = holder if isinstance(holder, int) else int(holder, 16)
        selector = keccak(text="nonces(uint256)" if by_agent else "nonces(address)")[:4]
        return int.from_bytes((yield from self._call(contract, selector + argument.to_bytes(32, "big"))), "big")

    def position_of(self, router: str, position_id: int) -> Core[tuple[int, list[ExitRule]]]:
        """Returns the cost of a position and its pending rules."""
        manager = "0x" + (yield from self._call(router, keccak(text="positionManager()")[:4]))[-20:].hex()
        argument = position_id.to_bytes(32, "big")
        position = _words((yield from self._call(manager, keccak(text="getPosition(uint256)")[:4] + argument)))
        listed = _words((yield from self._call(manager, keccak(text="getExitRules(uint256)")[:4] + argument)))
        if len(position) < 12 or len(listed) < 2:
            raise _node_failed()
        cost, fired = int.from_bytes(position[6], "big"), int.from_bytes(position[9], "big")
        rules = [
            ExitRule(int.from_bytes(trigger, "big", signed=True), int.from_bytes(share, "big"))
            for trigger, share in zip(listed[3::3], listed[4::3], strict=True)
        ]
        return cost, rules[fired:]

    def domain_of(self, contract: str) -> Core[Domain]:
        """Returns a contract's own signing domain (ERC-5267)."""
        data = yield from self._call(contract, keccak(text="eip712Domain()")[:4])
        words = _words(data)
        if len(words) < 7:
            mismatch = QuoteMismatch(f"eip712Domain() of {contract}", "a signing domain", None)
            raise UntrustedQuoteError("CONTRACT_NOT_CONFIRMED", [mismatch])

        def text_at(word: int) -> str:
            offset = int.from_bytes(words[word], "big")
            length = int.from_bytes(data[offset : offset + 32], "big")
            return data[offset + 32 : offset + 32 + length].decode()

        address = to_checksum_address(words[4][-20:])
        return Domain(text_at(1), text_at(2), int.from_bytes(words[3], "big"), str(address))

    def _call(self, to: str, data: bytes) -> Core[bytes]:
        result = yield from self._request("eth_call", [{"to": to, "data": "0x" + data.hex()}, "latest"])
        return bytes.fromhex(result.removeprefix("0x"))

    def _request(self, method: str, params: list[Any]) -> Core[Any]:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        try:
            response: Response = yield Request("POST", self._url, body)
        except NetworkError:
            raise _node_failed(proxy_of(self._url)) from None  # its message names the URL, which may hold a key
        answer = response.body
        if response.status != 200 or not isinstance(answer, dict) or answer.get("result") is None:
            raise _node_failed()
        return answer["result"]


def is_same_symbol(one: str, other: str) -> bool:
    return one.upper() == other.upper()


def _find_symbol(listed: list[tuple[str, str]], symbol: str) -> tuple[str, str] | None:
    """Returns the name and address of a symbol in any case; None if no or several tokens have it."""
    same = [each for each in listed if is_same_symbol(each[0], symbol)]
    exact = [each for each in same if each[0] == symbol]
    chosen = exact or same
    return chosen[0] if len(chosen) == 1 else None


def _words(data: bytes) -> list[bytes]:
    return [data[at : at + 32] for at in range(0, len(data), 32)]


def _node_failed(proxy: str | None = None) -> AgentTradingError:
    through = "" if proxy is None else f" through the proxy {shown(proxy)}"
    return NetworkError(
        "RPC_FAILED",
        f"The node at rpc_url did not answer{through}. Nothing was signed.",
        remedy="Check rpc_url and try again." if proxy is None else PROXY_REMEDY,
        retryable=True,
    )


def _assert_same(subject: str, facts: list[QuoteMismatch]) -> None:
    mismatches = [fact for fact in facts if str(fact.expected).lower() != str(fact.given).lower()]
    if mismatches:
        raise UntrustedQuoteError(f"{subject}_NOT_CONFIRMED", mismatches)


def _missing(what: str) -> AgentTradingError:
    return NotFoundError(
        "NOT_DEPLOYED", f"The service names no {what}.", remedy="Pin it, or ask the operator to configure it."
    )
