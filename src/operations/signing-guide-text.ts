import { type PrimaryType, signingTypes } from '@agent-trading-service/protocol/typed-data'
import { primaryTypes } from '../resources/typed-data.ts'
import { verifySignedMessage } from './signature-check.ts'
import { getSigningVectors } from './signing-vectors.ts'

/** What each message does, who signs it, and on which contract's domain. */
const meanings: Record<PrimaryType, string> = {
  SelfRegister:
    'registers an agent; signed by the key that will own it and trade for it, on the domain of the registry',
  LinkERC8004: "links an ERC-8004 identity; signed by the agent's owner, on the domain of the registry",
  OpenPosition: "opens a position; signed by the agent's signer, on the domain of the router",
  AddToPosition: "adds to a position; signed by the agent's signer, on the domain of the router",
  ReducePosition: "reduces or closes a position; signed by the agent's signer, on the domain of the router",
  UpdateExitLadder: "replaces the pending exit rules; signed by the agent's signer, on the domain of the router",
  OwnAgent: 'consents to own an agent that another key registers; signed by the owner, on the domain of OwnerControls',
  OfferOwnership: "offers an agent to a new owner; signed by the agent's owner, on the domain of OwnerControls",
  AcceptOwnership: 'takes an offered agent; signed by the new owner, on the domain of OwnerControls',
  SetSigner: "replaces the agent's signer; signed by the agent's owner, on the domain of OwnerControls",
  SetMandate: "sets what the agent may do; signed by the agent's owner, on the domain of OwnerControls",
  StopBuying: 'stops agents from buying; signed by their owner, on the domain of OwnerControls',
  CloseAll: 'sells all positions of agents; signed by their owner, on the domain of OwnerControls',
  CancelIntents: "voids intents that are not mined; signed by the agent's owner, on the domain of OwnerControls",
  CreateWebhook: "creates a webhook; signed by the agent's owner or signer, on the domain of the service",
  ListWebhooks: "lists webhooks; signed by the agent's owner or signer, on the domain of the service",
  ManageWebhook: "changes a webhook; signed by the agent's owner or signer, on the domain of the service",
}

/** Returns a primary type as EIP-712 encodes it, such as `LinkERC8004(uint256 agentId,…)`. */
const encodeType = (primaryType: PrimaryType): string =>
  `${primaryType}(${signingTypes[primaryType].map(({ name, type }) => `${type} ${name}`).join(',')})`

/** How to compute the `exitsHash` of a message. */
export const EXITS_HASH_RECIPE =
  'keccak256(abi.encode(bytes32[] ruleHashes)), where each ruleHash is keccak256(abi.encode(uint8 triggerType, int256 triggerBps, uint16 exitBps)), in array order; triggerType 0 is a StopLoss with negative triggerBps, 1 a TakeProfit with positive triggerBps'

/** How to sign, as Markdown: the steps, the rules for the values, and every type. */
export const signingGuide = `There are no API keys: whoever holds an agent's key signs EIP-712 typed data, and the service relays it.

1. Request the quote of the operation with every value. Its \`checks\` tell what would be rejected, \`maxUsdcAmount\` what would pass.
2. Sign the \`typedData\` of the quote with \`eth_signTypedData_v4\`. A contract signs by ERC-1271.
3. Post the \`body\` of the quote with the \`signature\`. The response arrives once the transaction is mined. Posting the identical signed body again is safe: it is executed once.

Rules for the signed values:
- The domain is \`name\`, \`version\` "1", \`chainId\` and \`verifyingContract\`; \`eip712\` of the quote has all of it.
- Amounts are signed in base units: USDC has 6 decimals, so a \`usdcAmount\` of "250" is signed as 250000000.
- \`deadline\` is in Unix seconds. \`nonce\` is the quote's; it increments with each executed message.
- \`minTokenOut\` and \`maxSlippageBps\` are always signed; if the body omits them, they are "0" and 100.
- \`exitsHash\` = ${EXITS_HASH_RECIPE}.
- The signature of a key is 65 bytes, with v 27 or 28 and s in the lower half of the curve order.

Types, fields in signing order:
${primaryTypes.map(type => `- \`${encodeType(type)}\` ${meanings[type]}.`).join('\n')}

\`POST ${verifySignedMessage.path}\` explains what is wrong with a signature; \`GET ${getSigningVectors.path}\` returns one known signature of each type.`
