import { type PrimaryType, signingTypes } from '../protocol/typed-data.ts'

/** What each message does, who signs it, and on which contract's domain. */
const meanings: Record<PrimaryType, string> = {
  SelfRegister: 'registers an agent; signed by the key that will own and trade for it, on the domain of the registry',
  LinkERC8004: "links an ERC-8004 identity; signed by the agent's owner, on the domain of the registry",
  OpenPosition: "opens a position; signed by the agent's signer, on the domain of the router",
  AddToPosition: "adds to a position; signed by the agent's signer, on the domain of the router",
  ReducePosition: "reduces or closes a position; signed by the agent's signer, on the domain of the router",
  UpdateExitLadder: "replaces the pending exit rules; signed by the agent's signer, on the domain of the router",
}

/** A primary type as EIP-712 encodes it. */
export const encodeType = (primaryType: PrimaryType): string =>
  `${primaryType}(${signingTypes[primaryType].map(({ name, type }) => `${type} ${name}`).join(',')})`

/** How to sign, as markdown: the steps, the rules of the values, and every type. */
export const signingWords = `Nothing here needs an API key: whoever holds the key of an agent signs EIP-712 typed data, and the service relays it.

1. Ask the quote of what you want to do, with every value. Its \`checks\` say what would be refused, \`maxUsdcAmount\` what would pass.
2. Sign the \`typedData\` of the quote with \`eth_signTypedData_v4\`. A contract signs by ERC-1271.
3. Post the \`body\` of the quote with the \`signature\`. The answer comes when the transaction is mined. Posting the identical signed body again is safe: it is executed once.

Rules of the signed values:
- The domain is \`name\`, \`version\` "1", \`chainId\` and \`verifyingContract\`, all in \`eip712\` of the quote.
- Amounts are signed in base units: USDC has 6 decimals, so a \`usdcAmount\` of "250" is signed as 250000000.
- \`deadline\` is in Unix seconds. \`nonce\` is the one of the quote; it grows by one with each executed message.
- \`minTokenOut\` and \`maxSlippageBps\` are always signed; left out of a body they are "0" and 100.
- \`exitsHash\` = keccak256(abi.encode(bytes32[] ruleHashes)), one hash per rule in array order, each keccak256(abi.encode(uint8 triggerType, int256 triggerBps, uint16 exitBps)) with triggerType 0 for a StopLoss (negative triggerBps) and 1 for a TakeProfit (positive).
- A signature of a key is 65 bytes with v 27 or 28 and s in the lower half.

Types, fields in signing order:
${(Object.keys(signingTypes) as PrimaryType[]).map(type => `- \`${encodeType(type)}\` ${meanings[type]}.`).join('\n')}

\`POST /signing/verify\` says which mistake a signature has; \`GET /signing/vectors\` has one known signature of each type.`
