"""A stand-in for the package eth-account: what the examples use of it, signed by viem's hash and noble's curve."""

import json

import host


class _Signed:
    def __init__(self, signature):
        self.signature = signature


class _Account:
    def __init__(self, key):
        self._key = key
        self.address = host.addressOf(key)

    def sign_typed_data(self, *, full_message):
        return _Signed(bytes.fromhex(host.signTypedData(self._key, json.dumps(full_message))[2:]))


class Account:
    @staticmethod
    def from_key(key):
        return _Account(key)
