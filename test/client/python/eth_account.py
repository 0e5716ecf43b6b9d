"""A stand-in for the package eth-account, which this test environment may lack: it signs through a helper process.

It has only what examples/agent.py uses. The helper signs with viem; see test/client/sign-typed-data.ts.
"""

import json
import os
import subprocess


class _Signed:
    def __init__(self, signature):
        self.signature = signature


class _Account:
    def __init__(self, key):
        self._key = key
        self.address = self._call({})["address"]

    def sign_typed_data(self, full_message):
        return _Signed(bytes.fromhex(self._call({"typedData": full_message})["signature"][2:]))

    def _call(self, request):
        helper = json.loads(os.environ["SIGN_HELPER"])
        text = json.dumps({**request, "key": self._key})
        done = subprocess.run(helper, input=text, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)


class Account:
    @staticmethod
    def from_key(key):
        return _Account(key)
