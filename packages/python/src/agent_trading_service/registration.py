"""Registers an agent: compares the quote, signs, pays the fee if there is one."""

from __future__ import annotations

from typing import Any

from .amounts import Integer, digits
from .effects import Account, Core, Sign
from .errors import PaymentError, Submission, ValidationError
from .messages import Session, account_for, holder_of, post, well_formed
from .payment import Payer
from .quotes import Expectation, Verified, verify_quote
from .typed_data import contract_of

Json = dict[str, Any]
NO_METADATA = "data:,"
"""The registry takes no empty URI."""


def register(
    session: Session,
    *,
    vault: str,
    name: str,
    metadata_uri: str,
    owner: Account | None,
    erc8004_agent_id: Integer | None,
    payer: Payer | None,
    deadline: Integer | None,
) -> Core[Json]:
    """Registers the client's account as the signer of a new agent. Returns a receipt with `agentId`."""
    if session.account is None:
        raise ValidationError("NO_ACCOUNT", "There is no signer.", remedy="Pass `account` to the client.")
    signer = session.account.address
    deployment = session.deployment
    terms: Json = {
        "vault": (yield from deployment.vault_by(vault)),
        "name": name,
        "metadataURI": metadata_uri,
        "signer": signer,
        "linkERC8004": erc8004_agent_id is not None,
        "erc8004AgentId": digits(erc8004_agent_id or 0, "erc8004_agent_id"),
    }
    body = {**terms, **({"owner": owner.address} if owner else {})}
    until = None if deadline is None else digits(deadline, "deadline")

    def compared() -> Core[tuple[Verified, Verified | None, str, str]]:
        """Returns what the signer and the owner sign, the digest of the registration and the holder of its nonce."""
        quote: Json = yield from session.transport.get("/agents/register/quote", **body, deadline=until)
        now = yield from deployment.now()

        def verify(primary_type: str, by: str, given: Json) -> Core[Verified]:
            contract = contract_of(primary_type)
            domain = yield from deployment.domain_of(contract)
            nonce = yield from deployment.nonce_of(contract, by)
            expectation = Expectation(
                domain=domain,
                primary_type=primary_type,
                message=terms,
                signer=by,
                nonce=nonce,
                deadline=until,
                now=now,
                max_deadline_seconds=session.max_deadline_seconds,
                body=body,
            )
            return verify_quote(
                {**given, "body": quote.get("body"), "serverTime": quote.get("serverTime")}, expectation
            )

        own = yield from verify("SelfRegister", signer, {**_signable(quote), "nonce": quote.get("signerNonce")})
        consent = None
        if owner:
            given = quote.get("ownerConsent") or {}
            consent = yield from verify("OwnAgent", owner.address, {**_signable(given), "nonce": given.get("nonce")})
        # The owner's consent is part of what is executed, so its digest identifies the registration.
        digest = consent.digest if consent else own.digest
        domain = yield from deployment.domain_of("AgentRegistry")
        holder = holder_of(domain, signer)
        on_chain = yield from deployment.nonce_of("AgentRegistry", signer)
        yield from session.nonces.assert_safe(holder, own.nonce, digest, now, is_from_chain=on_chain is not None)
        _assert_pays(quote, payer)
        return own, consent, digest, holder

    own, consent, digest, holder = yield from well_formed(compared())
    signed = {**body, "deadline": own.deadline}
    if owner and consent:
        signed["ownerNonce"] = str(consent.nonce)
        signed["ownerSignature"] = yield Sign(owner, consent.typed_data)
    signed["signature"] = yield Sign(account_for(session.account, signer), own.typed_data)
    session.nonces.posted(holder, own.nonce, digest, int(own.deadline))
    submission = Submission("register", "POST", "/agents/register", signed, digest, (holder, own.nonce))
    return (yield from post(session, submission, payer))


def _signable(given: Json) -> Json:
    return {"typedData": given.get("typedData"), "digest": given.get("digest")}


def _assert_pays(quote: Json, payer: Payer | None) -> None:
    if not quote["x402"]["enabled"]:
        return
    fee = quote["registrationFee"]
    if payer is None:
        raise PaymentError(
            "PAYER_REQUIRED",
            f"The registration costs {fee['displayUsd']} {fee['assetSymbol']}; there is no payer.",
            remedy="Pass payer=Payer(account=…, chain_id=…, asset=…, max_amount=…).",
        )
    if quote["x402"].get("requirements"):
        payer.assert_accepts(quote["x402"]["requirements"])
