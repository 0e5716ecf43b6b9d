import type { Hex, TypedDataDefinition } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { expect } from 'vitest'
import { controls } from '../../devnet/controls.ts'
import type { Body } from './body.ts'
import { type CallResult, call, deployment, type Fetch, type Input, type OperationId } from './surfaces.ts'

/** Controls of the chain that bypass the service: prices, time, pauses, statuses. */
export const chain = controls(deployment)

/** A registered agent and the key that signs for it. */
export type Trader = { agentId: string; account: PrivateKeyAccount }

export const GENESIS = deployment.vaults.genesis as `0x${string}`
export const FRONTIER = deployment.vaults.frontier as `0x${string}`

/** Signs the typed data of a quote as a wallet would. */
export function sign(account: PrivateKeyAccount, typedData: Body): Promise<Hex> {
  const { EIP712Domain: _, ...types } = typedData.types
  return account.signTypedData({ ...typedData, types } as TypedDataDefinition)
}

/** Returns a signed registration body, from its quote. */
export async function registrationOf(account: PrivateKeyAccount, changes: Input = {}): Promise<Body> {
  const { body } = await call('getRegistrationQuote', {
    signer: account.address,
    vault: GENESIS,
    name: 'test agent',
    metadataURI: 'https://agents.example/test.json',
    ...changes,
  })
  return { ...body.body, signature: await sign(account, body.typedData) }
}

/** Registers a new agent with a new key. */
export async function newTrader(changes: Input = {}): Promise<Trader> {
  const account = privateKeyToAccount(generatePrivateKey())
  const { status, body } = await call('registerAgent', await registrationOf(account, changes))
  expect(body).toMatchObject({ agentId: expect.stringMatching(/^[1-9]\d*$/) })
  expect(status).toBe(201)
  return { agentId: body.agentId, account }
}

/** The quote of each submission. */
export const quoteOf = {
  submitTradeIntent: 'getTradeIntentQuote',
  submitAddIntent: 'getAddIntentQuote',
  submitReduceIntent: 'getReduceIntentQuote',
  submitExitLadderIntent: 'getExitLadderIntentQuote',
} as const satisfies Partial<Record<OperationId, OperationId>>
export type Submission = keyof typeof quoteOf

/**
 * Returns the signed body of an intent, from its quote. A deadline is signed without quoting it, because quotes refuse
 * an expired one. `changes` are made after signing.
 */
export async function signedIntent(
  trader: Trader,
  submission: Submission,
  { deadline, ...input }: Input,
  changes: Input = {},
  fetch?: Fetch,
): Promise<Input> {
  const { agentId, account } = trader
  const { status, body } = await call(quoteOf[submission], { agentId, ...input }, fetch)
  expect({ status, body }).toMatchObject({ status: 200, body: { typedData: {} } })
  const signed = deadline === undefined ? {} : { deadline }
  const typedData = { ...body.typedData, message: { ...body.typedData.message, ...signed } }
  return { agentId, ...body.body, ...signed, signature: await sign(account, typedData), ...changes }
}

/** Quotes, signs and posts an intent. */
export async function submit(trader: Trader, submission: Submission, input: Input, fetch?: Fetch): Promise<CallResult> {
  return call(submission, await signedIntent(trader, submission, input, {}, fetch), fetch)
}

/** Opens a position and returns its id. */
export async function openPosition(trader: Trader, input: Input = {}): Promise<string> {
  const { status, body } = await submit(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '250', ...input })
  expect({ status, body }).toMatchObject({ status: 201, body: { positionId: expect.stringMatching(/^\d+$/) } })
  return body.positionId
}
