import type { ExitRule } from '@agent-trading-service/protocol/exit-rule'
import { type Order, orderIdOf } from '@agent-trading-service/protocol/order-typed-data'
import {
  type Domain,
  digestOf,
  hashExits,
  isOrderMessage,
  type Message,
  type PrimaryType,
} from '@agent-trading-service/protocol/typed-data'
import { type Address, decodeFunctionData, type Hex, isAddressEqual, type PublicClient, parseEventLogs } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { orderBookAbi } from '../../contracts-abi/order-book.ts'
import { ownerControlsAbi } from '../../contracts-abi/owner-controls.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { ownerMessageOf } from './owner-messages.ts'
import type { AccountState, Execution } from './violations.ts'

export type Domains = { registry: Domain; router: Domain; ownerControls: Domain; orderBook: Domain }

const abi = [...agentRegistryAbi, ...tradeRouterAbi, ...ownerControlsAbi, ...orderBookAbi]
const primaryTypes: Record<string, PrimaryType> = {
  openPosition: 'OpenPosition',
  addToPosition: 'AddToPosition',
  reducePosition: 'ReducePosition',
  updateExitLadder: 'UpdateExitLadder',
  placeOrder: 'PlaceOrder',
  cancelOrder: 'CancelOrder',
}

/** The events that name what was made, next to those of trades. */
const OUTCOMES = ['AgentRegistered', 'OrderPlaced', 'OrderEnded']

/** Returns the digest of the intent in a transaction's call data; undefined if it carries none. */
export function digestOfCall(data: Hex, { registry, router, ownerControls, orderBook }: Domains): Hex | undefined {
  if (data === '0x') return undefined
  const { functionName, args } = decodeFunctionData({ abi, data })
  if (functionName === 'selfRegisterAgent') {
    const [vault, name, metadataURI, signer, linkERC8004, erc8004AgentId, deadline] = args
    // Every client registers a new key, so its nonce is 0.
    const message = { vault, name, metadataURI, signer, linkERC8004, erc8004AgentId, deadline, nonce: 0n }
    return digestOf(registry, 'SelfRegister', message)
  }
  if (functionName === 'placeOrder') return orderIdOf(orderBook, args[0] as Order)
  if (functionName === 'cancelOrder') return digestOf(orderBook, 'CancelOrder', { ...args[0] })
  const owned = ownerMessageOf(functionName, args as readonly unknown[])
  if (owned) return digestOf(ownerControls, owned.primaryType, owned.message)
  const primaryType = primaryTypes[functionName]
  if (primaryType === undefined) return undefined
  const { exits, ...message } = (args as readonly unknown[])[0] as Message & { exits?: readonly ExitRule[] }
  const domain = isOrderMessage(primaryType) ? orderBook : router
  return digestOf(domain, primaryType, { ...message, ...(exits && { exitsHash: hashExits(exits) }) })
}

/** Returns the transactions of some accounts in blocks above `from`, without those the harness sent itself. */
export async function readExecutions(
  client: PublicClient,
  {
    from,
    accounts,
    domains,
    foreign,
  }: { from: bigint; accounts: readonly Address[]; domains: Domains; foreign: ReadonlySet<Hex> },
): Promise<{ executions: Execution[]; mined: Map<Address, number> }> {
  const head = await client.getBlockNumber()
  const numbers = Array.from({ length: Number(head - from) }, (_, index) => from + 1n + BigInt(index))
  const blocks = await Promise.all(
    numbers.map(blockNumber => client.getBlock({ blockNumber, includeTransactions: true })),
  )
  const transactions = blocks
    .flatMap(({ transactions }) => transactions)
    .filter(({ from }) => accounts.some(account => isAddressEqual(account, from)))
  const mined = new Map(
    accounts.map(account => [account, transactions.filter(({ from }) => isAddressEqual(from, account)).length]),
  )
  const own = transactions.filter(({ hash }) => !foreign.has(hash))
  const executions = await Promise.all(
    own.map(async ({ hash, to, input }): Promise<Execution> => {
      const { status, logs } = await client.getTransactionReceipt({ hash })
      const events = parseEventLogs({ abi, logs }).filter(
        ({ eventName }) => OUTCOMES.includes(eventName) || eventName.endsWith('FromIntent'),
      )
      // The end of the order that it replaces comes before it.
      const event = events.find(({ eventName }) => eventName === 'OrderPlaced') ?? events[0]
      const ids = (event?.args ?? {}) as { agentId?: bigint; positionId?: bigint; orderId?: Hex }
      const isSettlement =
        to !== null && !Object.values(domains).some(domain => isAddressEqual(domain.verifyingContract, to))
      return {
        hash,
        digest: isSettlement ? undefined : digestOfCall(input, domains),
        succeeded: status === 'success',
        agentId: ids.agentId?.toString(),
        positionId: ids.positionId?.toString(),
        orderId: ids.orderId,
      }
    }),
  )
  return { executions, mined }
}

type PoolContent = Record<'pending' | 'queued', Record<string, Record<string, unknown>>>

/** Returns the state of an account; its nonces are relative to `since`. */
export async function readAccount(
  client: PublicClient,
  { address, since, mined }: { address: Address; since: number; mined: number },
): Promise<AccountState> {
  const [nonce, pendingNonce, pool] = await Promise.all([
    client.getTransactionCount({ address }),
    client.getTransactionCount({ address, blockTag: 'pending' }),
    client.request<{ Method: 'txpool_content'; Parameters: []; ReturnType: PoolContent }>({
      method: 'txpool_content',
      params: [],
    }),
  ])
  const inPool = [pool.pending, pool.queued]
    .flatMap(part => Object.entries(part))
    .filter(([sender]) => sender.toLowerCase() === address.toLowerCase())
    .reduce((count, [, transactions]) => count + Object.keys(transactions).length, 0)
  return { address, mined, nonce: nonce - since, pendingNonce: pendingNonce - since, inPool }
}
