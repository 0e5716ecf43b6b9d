import type { Hex } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import { expect } from 'vitest'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { usdcTokenAbi } from '../../contracts-abi/usdc-token.ts'
import { chain, GENESIS, registrationOf, sign, type Trader } from './actors.ts'
import type { Body } from './body.ts'
import { type CallResult, call, deployment, type Input, type OperationId } from './surfaces.ts'

/** The quote of each message of an owner. */
const quoteOf = {
  setMandate: 'getMandateQuote',
  stopAgent: 'getStopQuote',
  offerOwnership: 'getOwnershipQuote',
  acceptOwnership: 'getAcceptanceQuote',
  setSigner: 'getSignerQuote',
  cancelIntents: 'getCancelQuote',
  lockFirstLoss: 'getFirstLossQuote',
} as const satisfies Partial<Record<OperationId, OperationId>>
export type OwnerOperation = keyof typeof quoteOf

/** Calls an operation: `call` over both surfaces, or `callOverHttp`. */
type CallSurface = (id: OperationId, input?: Input) => Promise<CallResult>

/** Returns the signed body of a message of an owner, from its quote. `changes` are made after signing. */
export async function signedByOwner(
  owner: PrivateKeyAccount,
  operation: OwnerOperation,
  input: Input & { agentId: string },
  changes: Input = {},
  callSurface: CallSurface = call,
): Promise<Input> {
  const { status, body } = await callSurface(quoteOf[operation], input)
  expect({ status, body }).toMatchObject({ status: 200, body: { typedData: {} } })
  return { agentId: input.agentId, ...body.body, signature: await sign(owner, body.typedData), ...changes }
}

/** Quotes, signs and sends a message of an owner. */
export async function sendAsOwner(
  owner: PrivateKeyAccount,
  operation: OwnerOperation,
  input: Input & { agentId: string },
  callSurface: CallSurface = call,
): Promise<CallResult> {
  return callSurface(operation, await signedByOwner(owner, operation, input, {}, callSurface))
}

/** Returns a registration that both the signer and the owner have signed. */
export async function ownedRegistrationOf(
  signer: PrivateKeyAccount,
  owner: PrivateKeyAccount,
  changes: Input = {},
): Promise<Body> {
  const input = { owner: owner.address, ...changes }
  const registration = await registrationOf(signer, input)
  const { vault, name, metadataURI, deadline } = registration
  const { body } = await call('getRegistrationQuote', {
    ...{ signer: signer.address, vault, name, metadataURI, deadline },
    ...input,
  })
  return { ...registration, ownerSignature: await sign(owner, body.ownerConsent.typedData) }
}

/** Registers an agent that another key owns. */
export async function newOwnedTrader(
  signer: PrivateKeyAccount,
  owner: PrivateKeyAccount,
  changes: Input = {},
): Promise<Trader> {
  const { status, body } = await call('registerAgent', await ownedRegistrationOf(signer, owner, changes))
  expect({ status, body }).toMatchObject({ status: 201, body: { agentId: expect.any(String) } })
  return { agentId: body.agentId, account: signer }
}

/** Deposits USDC into the genesis vault for a trader's owner. Returns the transaction. */
export async function depositFor({ account }: Pick<Trader, 'account'>, assets: bigint): Promise<Hex> {
  const { admin } = deployment.accounts
  const usdc = { address: deployment.contracts.USDC, abi: usdcTokenAbi } as const
  await chain.send(admin, { ...usdc, functionName: 'mint', args: [admin.address, assets] })
  await chain.send(admin, { ...usdc, functionName: 'approve', args: [GENESIS, assets] })
  const deposit = { address: GENESIS, abi: mandateVaultAbi, functionName: 'deposit' } as const
  const { transactionHash } = await chain.send(admin, { ...deposit, args: [assets, account.address] })
  return transactionHash
}

/** Deposits and locks what the next track requires. */
export async function lockFirstLoss(trader: Trader): Promise<void> {
  const { agentId, account } = trader
  const { body: risk } = await call('getRiskState', { agentId })
  await depositFor(trader, 2n * BigInt(risk.firstLoss.requiredUsdc))
  expect(await sendAsOwner(account, 'lockFirstLoss', { agentId })).toMatchObject({ status: 201 })
}
