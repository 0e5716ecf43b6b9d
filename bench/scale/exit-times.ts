import { setTimeout as sleep } from 'node:timers/promises'
import { eventTopic } from '@agent-trading-service/protocol/decode-event'
import { type Address, hexToBigInt, numberToHex, parseUnits } from 'viem'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import type { Devnet } from '../../devnet/index.ts'

const POLL_MS = 20
const TIMEOUT_MS = 60_000
const FIRED = eventTopic(positionManagerAbi, 'PositionLadderExitApplied')

/**
 * Moves a token's price to `priceBps` of its current value. Returns the time from the block of the price to the block
 * of the last exit.
 */
export async function measureExits(
  devnet: Devnet,
  { symbol, priceBps, positionIds }: { symbol: string; priceBps: number; positionIds: readonly number[] },
): Promise<{ ms: number; blocks: number }> {
  const { client, deployment } = devnet
  const token = deployment.tokens[symbol] as Address
  const readPrice = async () => {
    const oracle = { address: deployment.contracts.PriceOracle as Address, abi: priceOracleAbi }
    return (await client.readContract({ ...oracle, functionName: 'peekPrice', args: [token] }))[0]
  }
  const before = await readPrice()
  const fromBlock = await client.getBlockNumber()
  const usd = `${Number((before * BigInt(priceBps)) / 10_000n) / Number(parseUnits('1', 8))}`
  const posting = devnet.setPrice(symbol, usd)
  while ((await readPrice()) === before) await sleep(POLL_MS)
  const startedAt = performance.now()
  const waitedFor = new Set(positionIds)
  let lastBlock = fromBlock
  while (waitedFor.size > 0) {
    if (performance.now() - startedAt > TIMEOUT_MS) throw new Error(`${waitedFor.size} exits were not fired.`)
    await sleep(POLL_MS)
    const logs = await client.request({
      method: 'eth_getLogs',
      params: [
        {
          address: deployment.contracts.PositionManager as Address,
          topics: [FIRED],
          fromBlock: numberToHex(lastBlock),
        },
      ],
    })
    for (const { topics, blockNumber } of logs) {
      waitedFor.delete(Number(hexToBigInt(topics[1] ?? '0x0')))
      lastBlock = BigInt(blockNumber ?? 0)
    }
  }
  const ms = performance.now() - startedAt
  const { transactionHash } = await posting
  const { blockNumber } = await client.getTransactionReceipt({ hash: transactionHash })
  return { ms, blocks: Number(lastBlock - blockNumber) }
}
