import { contractAbis } from '@agent-trading-service/protocol/decode-revert'
import { type ContractErrorArgs, type ContractErrorName, encodeErrorResult, type Hex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { beforeAll, describe, expect, it } from 'vitest'
import { newTrader, registrationOf, sign, signedIntent, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { appWith, call, type Input } from '../support/surfaces.ts'

// Some codes are used by the service, which checks first, and by the contracts, which decide. Either way, the error
// has the same details and the same remedy. The lane of these tests returns the revert data of a contract error, as it
// does if the state of the chain changes between the service's check and the simulation.

type Abis = (typeof contractAbis)[number]
type ErrorName = ContractErrorName<Abis>

let trader: Trader
beforeAll(async () => {
  trader = await newTrader()
})

function revertData<name extends ErrorName>(errorName: name, args: ContractErrorArgs<Abis, name>): Hex {
  const abi = contractAbis.flatMap(abi => [...abi]).filter(item => item.type === 'error')
  return encodeErrorResult({ abi, errorName, args } as Parameters<typeof encodeErrorResult>[0])
}

/** An app whose lanes reject every intent with this revert data. */
function appWhoseLaneRejects(data: Hex) {
  const lane = { find: async () => undefined, relay: async () => ({ state: 'rejected', data }) }
  const namespace = { idFromName: () => ({}), get: () => lane }
  return appWith({}, { EXECUTOR_LANE: namespace as unknown as Env['EXECUTOR_LANE'] })
}

const openIntent = (input: Input = {}, changes: Input = {}) =>
  signedIntent(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '10', ...input }, changes)
const submitOpen = async (body: Input) => (await call('submitTradeIntent', body)).body

async function rejectedByContract<name extends ErrorName>(
  errorName: name,
  args: ContractErrorArgs<Abis, name>,
): Promise<Body> {
  const app = appWhoseLaneRejects(revertData(errorName, args))
  return (await call('submitTradeIntent', await openIntent(), app)).body
}

async function openWithNonce(nonce: string): Promise<Body> {
  const { body: quote } = await call('getTradeIntentQuote', {
    agentId: trader.agentId,
    symbol: 'NVDA',
    usdcAmount: '10',
  })
  const typedData = { ...quote.typedData, message: { ...quote.typedData.message, nonce } }
  const signature = await sign(trader.account, typedData)
  return submitOpen({ agentId: trader.agentId, ...quote.body, nonce, signature })
}

type Refusals = { service: () => Promise<Body>; contract: () => Promise<Body> }
const shared: Record<string, Refusals> = {
  INVALID_NONCE: {
    service: () => openWithNonce('999'),
    contract: () => rejectedByContract('InvalidNonce', [5n, 999n]),
  },
  EXPIRED_DEADLINE: {
    service: async () => submitOpen(await openIntent({ deadline: '1' })),
    contract: () => rejectedByContract('ExpiredDeadline', []),
  },
  AGENT_NOT_FOUND: {
    service: async () => (await call('getAgent', { agentId: '999999' })).body,
    contract: () => rejectedByContract('AgentNotFound', [999_999n]),
  },
  POSITION_NOT_FOUND: {
    service: async () => (await call('getPosition', { agentId: trader.agentId, positionId: '999999' })).body,
    contract: () => rejectedByContract('PositionNotFound', [999_999n]),
  },
}

describe('an error that the service and the contracts use', () => {
  it.each(Object.entries(shared))('%s has one shape of details and one remedy', async (code, { service, contract }) => {
    const [ours, theirs] = [await service(), await contract()]
    expect({ ours, theirs }).toMatchObject({ ours: { code }, theirs: { code } })
    expect(Object.keys(theirs.details).sort()).toEqual(Object.keys(ours.details).sort())
    for (const value of [...Object.values(ours.details), ...Object.values(theirs.details)])
      expect(typeof value).toBe('string')
    expect(theirs.remedy).toBe(ours.remedy)
  })

  it('INVALID_NONCE names the nonce that was given and the expected one', async () => {
    const { error, details } = await rejectedByContract('InvalidNonce', [5n, 999n])
    expect({ error, details }).toEqual({
      error: 'The nonce is 999; the next nonce is 5.',
      details: { given: '999', expected: '5' },
    })
  })

  it('POSITION_NOT_FOUND names the agent, though the contract error does not', async () => {
    const { details } = await rejectedByContract('PositionNotFound', [999_999n])
    expect(details).toEqual({ agentId: trader.agentId, positionId: '999999' })
  })

  it('INVALID_SIGNATURE always names the problem, the signer and the digest', async () => {
    const ours = await submitOpen(await openIntent({}, { usdcAmount: '11' }))
    const theirs = await rejectedByContract('InvalidSignature', [])
    const common = { problem: expect.any(String), signer: trader.account.address, digest: expect.stringMatching(/^0x/) }
    expect(ours).toMatchObject({ code: 'INVALID_SIGNATURE', details: common })
    expect(theirs).toMatchObject({ code: 'INVALID_SIGNATURE', details: common, remedy: ours.remedy })
  })

  it('INVALID_EXIT_RULES always names the problem', async () => {
    const ours = await submitOpen(await openIntent({}, { exits: [{ triggerBps: -800, exitBps: 1 }] }))
    const theirs = await rejectedByContract('InvalidExitRules', [])
    const common = { problem: expect.any(String) }
    expect(ours).toMatchObject({ code: 'INVALID_EXIT_RULES', details: common })
    expect(theirs).toMatchObject({ code: 'INVALID_EXIT_RULES', details: common, remedy: ours.remedy })
  })

  it('EXPIRED_DEADLINE of a registration has the same details', async () => {
    const body = await registrationOf(privateKeyToAccount(generatePrivateKey()))
    const { body: refusal } = await call('registerAgent', body, appWhoseLaneRejects(revertData('ExpiredDeadline', [])))
    expect(refusal).toMatchObject({
      code: 'EXPIRED_DEADLINE',
      details: { given: body.deadline, serverTime: expect.stringMatching(/^\d+$/) },
    })
  })
})
