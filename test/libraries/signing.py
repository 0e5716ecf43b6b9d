"""Signs the typed data of a file with a key, by eth-account, and prints the signatures."""

import json
import sys

from eth_account import Account

file, key = sys.argv[1:]
for typed_data in json.load(open(file)):
    print(Account.sign_typed_data(key, full_message=typed_data).signature.hex())
