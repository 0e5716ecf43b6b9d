import { setTimeout as sleep } from 'node:timers/promises'
import { eventTopic } from '@agent-trading-service/protocol/decode-event'
import { type Address, type Hex, numberToHex, parseUnits, toHex } from 'viem'
import { orderBookAbi } from '../../contracts-abi/order-book.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import type { Devnet } from '../../devnet/index.ts'

const POLL_MS = 20
const TIMEOUT_MS = 60_000
/** From the oracle's 8 decimals to the 18 of reports. */
const REPORT_UNIT = 10n ** 10n
const FIRED = eventTopic(positionManagerAbi, 'PositionLadderExitApplied')
const EXECUTED = eventTopic(orderBookAbi, 'OrderExecuted')

/**
 * Moves a token's price to `priceBps` of its current value: by a post, or by a signed report where the chain has those.
 * Returns the time from the block of the price to the block of the last exit.
 */
export const measureExits = (
  devnet: Devnet,
  { positionIds, ...move }: PriceMove & { positionIds: readonly number[] },
): Promise<FiringTime> =>
  measure(devnet, move, {
    address: devnet.deployment.contracts.PositionManager as Address,
    topic: FIRED,
    ids: positionIds.map(id => toHex(id, { size: 32 })),
  })

/** Does the same for an order. */
export const measureOrder = (devnet: Devnet, { orderId, ...move }: PriceMove & { orderId: Hex }): Promise<FiringTime> =>
  measure(devnet, move, {
    address: devnet.deployment.contracts.OrderBook as Address,
    topic: EXECUTED,
    ids: [orderId],
  })

type PriceMove = { symbol: string; priceBps: number }
export type FiringTime = { ms: number; blocks: number }

/** Measures until there is an event with each of the ids as its first argument. */
async function measure(
  devnet: Devnet,
  { symbol, priceBps }: PriceMove,
  { address, topic, ids }: { address: Address; topic: Hex; ids: readonly Hex[] },
): Promise<{ ms: number; blocks: number }> {
  const { client, deployment } = devnet
  const token = deployment.tokens[symbol] as Address
  const readPrice = async () => {
    const oracle = { address: deployment.contracts.PriceOracle as Address, abi: priceOracleAbi }
    return (await client.readContract({ ...oracle, functionName: 'peekPrice', args: [token] }))[0]
  }
  const before = await readPrice()
  const after = (before * BigInt(priceBps)) / 10_000n
  const { reports } = deployment
  let fromBlock = await client.getBlockNumber()
  let postedIn = async () => fromBlock
  let startedAt = performance.now()
  if (reports) {
    const control = async (name: string, body: object) =>
      (await fetch(`${reports.url}/test/${name}`, { method: 'POST', body: JSON.stringify(body) })).text()
    const { timestamp } = await client.getBlock()
    // A stream has one report a second: the new price is observed in a second of which none was sent.
    await control('failure', { how: 'stalled' })
    while ((await client.getBlock()).timestamp < timestamp + 2n) await sleep(POLL_MS)
    await control(symbol, { price: `${after * REPORT_UNIT}` })
    fromBlock = await client.getBlockNumber()
    startedAt = performance.now()
    await control('failure', {})
  } else {
    const posting = devnet.setPrice(symbol, `${Number(after) / Number(parseUnits('1', 8))}`)
    while ((await readPrice()) === before) await sleep(POLL_MS)
    startedAt = performance.now()
    postedIn = async () => {
      const { transactionHash } = await posting
      return (await client.getTransactionReceipt({ hash: transactionHash })).blockNumber
    }
  }
  const waitedFor = new Set(ids)
  let lastBlock = fromBlock
  while (waitedFor.size > 0) {
    if (performance.now() - startedAt > TIMEOUT_MS) throw new Error(`${waitedFor.size} were not fired.`)
    await sleep(POLL_MS)
    const logs = await client.request({
      method: 'eth_getLogs',
      params: [
        {
          address,
          topics: [topic],
          fromBlock: numberToHex(lastBlock),
        },
      ],
    })
    for (const { topics, blockNumber } of logs) {
      waitedFor.delete(topics[1] ?? '0x')
      lastBlock = BigInt(blockNumber ?? 0)
    }
  }
  const ms = performance.now() - startedAt
  return { ms, blocks: Number(lastBlock - (await postedIn())) }
}
