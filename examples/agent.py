"""An agent on the plain HTTP API: it registers where no fee is due, opens a position and closes it.

pip install requests eth-account
BASE=http://127.0.0.1:8787 AGENT_KEY=0x… [ATS_AGENT=7] python examples/agent.py
"""

import os
import time

import requests
from eth_account import Account

BASE = os.environ.get("BASE", "http://127.0.0.1:8787")
account = Account.from_key(os.environ["AGENT_KEY"])
session = requests.Session()
EXECUTED_AT_MOST_ONCE = 30  # seconds in which a signed body is posted again


class Refusal(Exception):
    """An error of the service: its code, what is wrong, and what to do next."""


def get(path, **query):
    response = session.get(BASE + path, params=query, timeout=20)
    body = response.json()
    if not response.ok:
        raise Refusal(f"{body['code']}: {body['error']} {body.get('remedy', '')}")
    return body


def sign(quote, expected):
    """Signs the quote's typed data, after comparing it with the request."""
    typed_data = quote["typedData"]
    for field, value in expected.items():
        if str(typed_data["message"][field]).lower() != str(value).lower():
            raise Refusal(f"The quote has another {field}: {typed_data['message'][field]}")
    return "0x" + account.sign_typed_data(full_message=typed_data).signature.hex().removeprefix("0x")


def post(path, quote, expected):
    """Posts the signed body until the outcome is known. The service executes an identical body at most once."""
    body = {**quote["body"], "signature": sign(quote, expected)}
    until = time.monotonic() + EXECUTED_AT_MOST_ONCE
    while True:
        try:
            response = session.post(BASE + path, json=body, timeout=20)
            answer = response.json()
            if response.ok:
                return answer
            if not answer.get("retryable") or time.monotonic() > until:
                raise Refusal(f"{answer['code']}: {answer['error']} {answer.get('remedy', '')}")
            time.sleep(answer.get("retryAfterSeconds", 1))
        except (requests.ConnectionError, requests.Timeout):
            if time.monotonic() > until:
                raise
            time.sleep(1)


def register():
    vault = get("/vaults/genesis")["vault"]["contractAddress"]
    terms = {"signer": account.address, "vault": vault, "name": "python", "metadataURI": "https://agents.example/py.json"}
    quote = get("/agents/register/quote", **terms)
    if quote["x402"]["enabled"]:
        raise Refusal("The registration has a fee: register with `ats register`, then pass ATS_AGENT.")
    return post("/agents/register", quote, terms)["agentId"]


agent_id = os.environ.get("ATS_AGENT") or register()
print(f"agent {agent_id} of {account.address}")

token = next(token["address"] for token in get("/tokens")["tokens"] if token["symbol"] == "NVDA")
path = f"/agents/{agent_id}/trade-intents"
quote = get(f"{path}/quote", symbol="NVDA", usdcAmount="100", exits="-800:10000,1500:10000")
failed = [check["rule"] for check in quote["checks"] if not check["pass"]]
if failed:
    raise Refusal(f"The quote fails {', '.join(failed)}.")
asked = {"agentId": agent_id, "token": token, "usdcAmount": "100000000", "minTokenOut": "0"}
position_id = post(path, quote, asked)["positionId"]
print(f"opened position {position_id}")

path = f"/agents/{agent_id}/reduce-intents"
quote = get(f"{path}/quote", positionId=position_id, exitBps="10000")
receipt = post(path, quote, {"agentId": agent_id, "positionId": position_id, "exitBps": "10000"})
print(f"closed position {position_id} in {receipt['transactionHash']}")
