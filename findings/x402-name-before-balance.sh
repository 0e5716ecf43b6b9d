#!/usr/bin/env bash
# The `exact` scheme of an x402 facilitator tells a payer without funds that the token's name is wrong. When the simulated
# transfer fails, the library compares the token's `name()` with the name of the signing domain, before the balance.
# EIP-712 and EIP-3009 do not ask for the two to be equal, and a signature that verified has already proved the domain:
# the payer changes what was right, and never learns that funds are missing.
#
# @x402/evm 2.27.0 with viem 2.57.1 (JavaScript). Seen 2026-11-29. Needs node and npm. The chain is an object with the
# answers of a token of which the payer has none. Exits with 1 if the library reports anything else than recorded below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund --save-exact @x402/evm@2.27.0 viem@2.57.1

cat >verify.mjs <<'JS'
import { ExactEvmScheme } from '@x402/evm/exact/facilitator'
import { encodeFunctionResult, erc20Abi, getAddress, parseAbi, toFunctionSelector } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'

const CHAIN_ID = 8453
const domain = { name: 'Signed Dollar', version: '1' }
const asset = getAddress('0x000000000000000000000000000000000000a55e')
const payer = privateKeyToAccount(generatePrivateKey())
const payTo = getAddress('0x0000000000000000000000000000000000009a1d')
const token = [...erc20Abi, ...parseAbi([
  'function version() view returns (string)',
  'function authorizationState(address, bytes32) view returns (bool)',
])]

/** What a token with a name says whose domain is the one above, and of which the payer has none. */
const chainWith = name => {
  const values = { balanceOf: 0n, name, version: '1', authorizationState: false }
  const results = new Map(
    Object.entries(values).map(([functionName, result]) => [
      toFunctionSelector(token.find(item => item.name === functionName)),
      encodeFunctionResult({ abi: token, functionName, result }),
    ]),
  )
  return {
    getAddresses: () => [payTo],
    getCode: async ({ address }) => (address === asset ? '0x60' : undefined),
    verifyTypedData: async () => true,
    async readContract({ functionName, args }) {
      if (functionName === 'transferWithAuthorization') throw new Error('execution reverted: ERC20InsufficientBalance')
      return args[1].map(({ callData }) => ({ success: true, returnData: results.get(callData.slice(0, 10)) }))
    },
  }
}

const authorization = {
  from: payer.address,
  to: payTo,
  value: '1000000',
  validAfter: '0',
  validBefore: `${Math.floor(Date.now() / 1000) + 600}`,
  nonce: generatePrivateKey(),
}
const signature = await payer.signTypedData({
  domain: { ...domain, chainId: CHAIN_ID, verifyingContract: asset },
  primaryType: 'TransferWithAuthorization',
  types: {
    TransferWithAuthorization: [
      { name: 'from', type: 'address' },
      { name: 'to', type: 'address' },
      { name: 'value', type: 'uint256' },
      { name: 'validAfter', type: 'uint256' },
      { name: 'validBefore', type: 'uint256' },
      { name: 'nonce', type: 'bytes32' },
    ],
  },
  message: authorization,
})
const requirements = {
  scheme: 'exact',
  network: `eip155:${CHAIN_ID}`,
  amount: authorization.value,
  asset,
  payTo,
  maxTimeoutSeconds: 600,
  extra: domain,
}
const payload = { x402Version: 2, accepted: requirements, payload: { signature, authorization } }
for (const name of [domain.name, 'Dollar']) {
  const { invalidReason } = await new ExactEvmScheme(chainWith(name)).verify(payload, requirements)
  console.log(`${name}: ${invalidReason}`)
}
JS

node verify.mjs | tee seen
cat >recorded <<'TXT'
Signed Dollar: invalid_exact_evm_insufficient_balance
Dollar: invalid_exact_evm_token_name_mismatch
TXT
diff recorded seen
