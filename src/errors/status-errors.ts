import type { Address } from 'viem'
import { row } from './error-row.ts'

/** New risk or a change that the status of agent, allocation, track, position or contract does not allow. */
export const statusErrors = {
  AGENT_NOT_TRADABLE: row<{ agentId: bigint }>({
    status: 400,
    sentence: ({ agentId }) => `Agent ${agentId} is not active, so it cannot take new risk.`,
    remedy: 'Reducing and closing still work; GET /agents/{agentId} shows the status.',
  }),
  ALLOCATION_NOT_ACTIVE: row<{ agentId: bigint }>({
    status: 400,
    sentence: ({ agentId }) => `The allocation of agent ${agentId} is not active.`,
    remedy: 'Reducing and closing still work; the operator activates allocations.',
  }),
  VAULT_TRACK_NOT_ACTIVE: row<{ vault: Address; trackId: bigint }>({
    status: 400,
    sentence: ({ vault, trackId }) => `Track ${trackId} is not active in the vault ${vault}.`,
    remedy: 'GET /vaults/{id} shows the tracks; the operator activates them.',
  }),
  REGISTRY_PAUSED: row({
    status: 503,
    sentence: () => 'The agent registry is paused: new risk is rejected.',
    remedy: 'Reducing and closing still work; try again once the operator has unpaused the registry.',
    retryable: true,
  }),
  TRADING_PAUSED: row({
    status: 503,
    sentence: () => "Trading is paused in the agent's vault.",
    remedy: 'Ladder updates still work; try again once the operator has unpaused the vault.',
    retryable: true,
  }),
  CAPITAL_MODE_MISMATCH: row<{ positionId: bigint; capitalMode: bigint }>({
    status: 400,
    sentence: ({ positionId, capitalMode }) =>
      `Position ${positionId} has the capital mode ${capitalMode}, which is not that of the agent's track.`,
    remedy: 'Close the position and open a new one.',
  }),
  EXIT_IN_PROGRESS: row<{ positionId: bigint }>({
    status: 400,
    sentence: ({ positionId }) => `An exit rule of position ${positionId} has been met and is not completely filled.`,
    remedy: 'Wait until the exit is filled, or reduce the position.',
    retryable: true,
  }),
}
