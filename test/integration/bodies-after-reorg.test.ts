import { parseEventLogs } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { expect, it } from 'vitest'
import { erc8004IdentityRegistryAbi } from '../../contracts-abi/erc8004-identity-registry.ts'
import type { Account } from '../../devnet/accounts.ts'
import { chain, registrationOf, sign, signedIntent, type Trader } from '../support/actors.ts'
import { node } from '../support/history-oracle.ts'
import { signedByOwner } from '../support/owner.ts'
import { reorgChain } from '../support/reorg-chain.ts'
import { type CallResult, callOverHttp as call, deployment, type Input, type OperationId } from '../support/surfaces.ts'

// Bodies about an agent that a reorg takes back, until a lane registers it again. Over HTTP alone: what a second call
// finds depends on how far the lanes are.

const { accounts, contracts } = deployment
const holder = accounts.agents.at(-1) as Account

async function signedOrder({ agentId, account }: Trader, input: Input): Promise<Input> {
  const { body } = await call('getOrderQuote', { agentId, ...input })
  return { agentId, ...body.body, signature: await sign(account, body.typedData) }
}

async function signedLink({ agentId, account }: Trader, erc8004AgentId: bigint): Promise<Input> {
  const { body } = await call('getErc8004LinkQuote', { agentId, erc8004AgentId: `${erc8004AgentId}` })
  return { agentId, ...body.body, signature: await sign(account, body.typedData) }
}

async function newIdentity(): Promise<bigint> {
  const registry = { address: contracts.ERC8004IdentityRegistry as `0x${string}`, abi: erc8004IdentityRegistryAbi }
  const { logs } = await chain.send(holder, { ...registry, functionName: 'register', args: [] })
  const [minted] = parseEventLogs({ abi: registry.abi, logs, eventName: 'Registered' })
  return minted?.args.agentId ?? 0n
}

it('bodies that were accepted are never refused for good while a reorg hides their agent, and return their receipts again', async () => {
  const account = privateKeyToAccount(holder.privateKey)
  const identity = await newIdentity()
  const ancestor = Number(await node.getBlockNumber())
  const registration = await registrationOf(account)
  const registered = await call('registerAgent', registration)
  const { agentId } = registered.body
  const trader = { agentId, account }
  const mandate = { agentId, mode: 'trade', allowedTokens: 'NVDA' }
  const posted: { operation: OperationId; body: Input; accepted: CallResult }[] = [
    { operation: 'registerAgent', body: registration, accepted: registered },
  ]
  const positionId = () => posted.at(-1)?.accepted.body.positionId
  const signed: [OperationId, () => Promise<Input>][] = [
    ['submitTradeIntent', () => signedIntent(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '50' })],
    [
      'submitReduceIntent',
      () => signedIntent(trader, 'submitReduceIntent', { positionId: positionId(), exitBps: 5_000 }),
    ],
    ['submitOrder', () => signedOrder(trader, { type: 'limit', symbol: 'NVDA', usdcAmount: '20', price: '1' })],
    ['setMandate', () => signedByOwner(account, 'setMandate', mandate, {}, call)],
    ['linkErc8004', () => signedLink(trader, identity)],
  ]
  for (const [operation, signedBody] of signed) {
    const body = await signedBody()
    const accepted = await call(operation, body)
    expect([operation, accepted.status < 300]).toEqual([operation, true])
    posted.push({ operation, body, accepted })
  }

  await reorgChain(ancestor)
  for (const { operation, body } of posted) {
    const never = { ...body, deadline: `${BigInt(`${body.deadline}`) + 1n}` }
    const known = await call(operation, operation === 'submitTradeIntent' ? { ...body, note: 'Breakout' } : body)
    const unknown = await call(operation, never)
    expect([operation, known.status < 300 || known.body.retryable]).toEqual([operation, true])
    expect([operation, unknown.status < 300 || unknown.body.retryable === true]).toEqual([operation, false])
  }
  for (const { operation, body, accepted } of posted)
    await expect
      .poll(async () => (await call(operation, body)).body)
      .toMatchObject({ transactionHash: accepted.body.transactionHash })
})
