import type { Address, Hex } from 'viem'
import { row } from './error-row.ts'

/** Registrations of agents and their ERC-8004 identities. */
export const registrationErrors = {
  VAULT_NOT_REGISTERED: row<{ vault: Address }>({
    status: 400,
    sentence: ({ vault }) => `${vault} is not a registered vault.`,
    remedy: 'Send the contractAddress of a vault that GET /vaults lists.',
  }),
  INVALID_NAME: row<{ length: bigint }>({
    status: 400,
    sentence: ({ length }) => `The name has ${length} bytes; it must have 1 to 128.`,
    remedy: 'Send a name of that length.',
  }),
  INVALID_METADATA_URI: row<{ length: bigint }>({
    status: 400,
    sentence: ({ length }) => `The metadataURI has ${length} bytes; it must have 1 to 2048.`,
    remedy: 'Send a metadataURI of that length.',
  }),
  INVALID_ERC8004_LINK: row<{ problem: string }>({
    status: 400,
    sentence: ({ problem }) => `The identity link is invalid: ${problem}.`,
    remedy: 'Send linkERC8004 true with the id of a token that the signer holds, or false with erc8004AgentId "0".',
  }),
  ERC8004_ID_WITHOUT_LINK: row<{ erc8004AgentId: bigint }>({
    status: 400,
    sentence: ({ erc8004AgentId }) => `erc8004AgentId is ${erc8004AgentId}, but linkERC8004 is false.`,
    remedy: 'Send linkERC8004 true, or erc8004AgentId "0".',
  }),
  ERC8004_IDENTITY_NOT_FOUND: row<{ erc8004AgentId: bigint }>({
    status: 404,
    sentence: ({ erc8004AgentId }) => `The ERC-8004 registry has no token ${erc8004AgentId}.`,
    remedy: 'Register the identity first.',
  }),
  ERC8004_OWNER_MISMATCH: row<{ erc8004AgentId: bigint; expected: Address; actual: Address }>({
    status: 400,
    sentence: ({ erc8004AgentId, expected, actual }) =>
      `The ERC-8004 token ${erc8004AgentId} is held by ${actual}, not by the agent's owner ${expected}.`,
    remedy: "Link an identity that the agent's owner holds.",
  }),
  REGISTRATION_IN_FLIGHT: row<{ digest: Hex }>({
    status: 409,
    sentence: () => 'Another registration of this signer is in progress with the fee that was paid.',
    remedy: 'Wait for its response, then send this one again.',
    retryable: true,
    retryAfterSeconds: 2,
  }),
  ERC8004_ALREADY_LINKED: row<{ erc8004AgentId: bigint; agentId: bigint }>({
    status: 409,
    sentence: ({ erc8004AgentId, agentId }) =>
      `The ERC-8004 token ${erc8004AgentId} is already linked to agent ${agentId}.`,
    remedy: 'Link another identity: each one belongs to one agent.',
  }),
  ERC8004_IDENTITY_NOT_LINKED: row<{ erc8004AgentId: bigint }>({
    status: 404,
    sentence: ({ erc8004AgentId }) => `No agent is linked to the ERC-8004 token ${erc8004AgentId}.`,
    remedy: 'POST /agents/{agentId}/erc8004/link links an agent to it.',
  }),
  REGISTRATION_PAUSED: row({
    status: 503,
    sentence: () => 'The agent registry is paused: registrations and new risk are rejected.',
    remedy: 'Reducing and closing positions still works; try again once the operator has unpaused the registry.',
    retryable: true,
  }),
  ENFORCED_PAUSE: row({
    status: 503,
    sentence: () => 'The agent registry is paused: registrations are rejected.',
    remedy: 'Try again once the operator has unpaused the registry.',
    retryable: true,
  }),
}
