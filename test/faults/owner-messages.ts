import { MandateMode } from '@agent-trading-service/protocol/enums'
import type { Message, OwnerPrimaryType } from '@agent-trading-service/protocol/typed-data'
import type { Address } from 'viem'

/** What an owner does while the agent trades. */
export type OwnerGoal = { kind: 'signer'; signer: Address } | { kind: 'reduceOnly' | 'flatten' | 'trade' }

type OwnerDraft = {
  method: 'POST' | 'PUT'
  path: string
  kind: 'owner'
  primaryType: OwnerPrimaryType
  message: Message
  body: object
}

const NO_LIMITS = {
  maxTradeUsdc: 0n,
  maxDailyTurnoverUsdc: 0n,
  maxExposureUsdc: 0n,
  allowedTokens: [] as readonly Address[],
  validUntil: 0n,
}

/** Returns a message of the owner of an agent, and the body that carries it. */
export function ownerDraftOf(goal: OwnerGoal, agentId: bigint, terms: { nonce: bigint; deadline: bigint }): OwnerDraft {
  const to = (method: 'POST' | 'PUT', segment: string) =>
    ({ method, path: `/agents/${agentId}/${segment}`, kind: 'owner' }) as const
  switch (goal.kind) {
    case 'signer': {
      const { signer } = goal
      return {
        ...to('POST', 'signer'),
        primaryType: 'SetSigner',
        message: { agentId, signer, ...terms },
        body: { newSigner: signer },
      }
    }
    case 'trade': {
      const message = { agentId, mode: MandateMode.Trade, ...NO_LIMITS, ...terms }
      return { ...to('PUT', 'mandate'), primaryType: 'SetMandate', message, body: { mode: 'trade' } }
    }
    default: {
      const primaryType = goal.kind === 'flatten' ? 'CloseAll' : 'StopBuying'
      return {
        ...to('POST', 'stop'),
        primaryType,
        message: { agentIds: [agentId], ...terms },
        body: { action: goal.kind },
      }
    }
  }
}

/** The functions that the owners of the harness call, with the names of their arguments before the signature. */
const ownerFunctions: Record<string, [primaryType: OwnerPrimaryType, ...argumentNames: string[]]> = {
  setSigner: ['SetSigner', 'agentId', 'signer', 'nonce', 'deadline'],
  setMandate: ['SetMandate', 'agentId', 'mandate', 'nonce', 'deadline'],
  stopBuying: ['StopBuying', 'agentIds', 'nonce', 'deadline'],
  closeAll: ['CloseAll', 'agentIds', 'nonce', 'deadline'],
}

/** Returns the message in a call of OwnerControls; undefined for any other call. */
export function ownerMessageOf(
  functionName: string,
  args: readonly unknown[],
): { primaryType: OwnerPrimaryType; message: Message } | undefined {
  const [primaryType, ...names] = ownerFunctions[functionName] ?? []
  if (primaryType === undefined) return undefined
  const { mandate, ...message } = Object.fromEntries(names.map((name, index) => [name, args[index]]))
  return { primaryType, message: { ...message, ...(mandate as object) } as Message }
}
