from typing import Any

import httpx
from eth_account import Account as Keys

from agent_trading_service import ExitRule
from agent_trading_service.typed_data import SIGNING_TYPES, Domain, digest_of, hash_exits, typed_data_of

from .conftest import Service


def test_every_vector_of_the_service_has_the_same_digest_and_signature(service: Service) -> None:
    vectors: dict[str, Any] = httpx.get(f"{service.url}/signing/vectors").json()
    account = Keys.from_key(vectors["privateKey"])
    seen = set()
    for vector in vectors["vectors"]:
        given = vector["typedData"]
        domain = given["domain"]
        own = Domain(domain["name"], domain["version"], domain["chainId"], domain["verifyingContract"])
        typed_data = typed_data_of(own, given["primaryType"], given["message"])
        assert typed_data == given
        assert digest_of(typed_data) == vector["digest"]
        assert "0x" + account.sign_typed_data(full_message=typed_data).signature.hex() == vector["signature"]
        seen.add(given["primaryType"])
    assert seen == set(SIGNING_TYPES)


def test_a_ladder_hashes_as_the_contracts_hash_it(service: Service) -> None:
    quote = httpx.get(
        f"{service.url}/signing/vectors",
    ).json()
    rules = [vector for vector in quote["vectors"] if "exits" in vector]
    for vector in rules:
        exits = [ExitRule(rule["triggerBps"], rule["exitBps"]) for rule in vector["exits"]]
        assert hash_exits(exits) == vector["typedData"]["message"]["exitsHash"]
