import { erc4626Abi } from 'viem'
import { allocationManagerAbi } from '../../contracts-abi/allocation-manager.ts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tokenRegistryAbi } from '../../contracts-abi/token-registry.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { tradeRouterLensAbi } from '../../contracts-abi/trade-router-lens.ts'
import type { Body } from './body.ts'
import { node } from './history-oracle.ts'
import { deployment } from './surfaces.ts'

// What the contracts say at a past time. The embedded chain keeps all states; other nodes do not.

const { contracts } = deployment
const lens = { address: contracts.TradeRouterLens, abi: tradeRouterLensAbi } as const
const allocations = { address: contracts.AllocationManager, abi: allocationManagerAbi } as const
const positions = { address: contracts.PositionManager, abi: positionManagerAbi } as const
const router = { address: contracts.TradeRouter, abi: tradeRouterAbi } as const
const tokenRegistry = { address: contracts.TokenRegistry, abi: tokenRegistryAbi } as const

/** Returns the last block at or before a time in Unix seconds. */
export async function blockAt(time: number): Promise<bigint> {
  let from = 0n
  let to = await node.getBlockNumber({ cacheTime: 0 })
  while (from < to) {
    const middle = (from + to + 1n) / 2n
    const { timestamp } = await node.getBlock({ blockNumber: middle })
    if (timestamp <= BigInt(time)) from = middle
    else to = middle - 1n
  }
  return from
}

/** Returns the fields of a point of the equity history at a time, computed by the contracts at that time's block. */
export async function equityAt(agentId: string, time: number): Promise<Body> {
  const blockNumber = await blockAt(time)
  const of = { args: [BigInt(agentId)], blockNumber } as const
  const [oracle, cap, realized, record, ids] = await Promise.all([
    node.readContract({ ...tokenRegistry, functionName: 'priceOracle', blockNumber }),
    node.readContract({ ...allocations, functionName: 'allocationCap', ...of }),
    node.readContract({ ...router, functionName: 'lifetimeRealizedPnlUsdc', ...of }),
    node.readContract({ ...allocations, functionName: 'trackRecordOf', ...of }),
    node.readContract({ ...positions, functionName: 'getOpenPositionIds', ...of }),
  ])
  const values = await Promise.all(
    ids.map(async id => {
      const position = await node.readContract({ ...positions, functionName: 'getPosition', args: [id], blockNumber })
      const [price] = await node.readContract({
        address: oracle,
        abi: priceOracleAbi,
        functionName: 'peekPrice',
        args: [position.token],
        blockNumber,
      })
      return (position.tokenAmount * price) / 10n ** 20n - position.usdcCostBasis // all tokens have 18 decimals
    }),
  )
  const unrealized = values.reduce((sum, value) => sum + value, 0n)
  const sum = cap + record.realizedPnl + unrealized
  const equity = sum > 0n ? sum : 0n
  const peak = cap + record.peakRealizedPnl
  return {
    equityUsdc: `${equity}`,
    realizedPnlUsdc: `${realized}`,
    unrealizedPnlUsdc: `${unrealized}`,
    drawdownBps: equity < peak ? Number(((peak - equity) * 10_000n) / peak) : 0,
    openCount: ids.length,
  }
}

/** Returns the lens's own equity at a time, which reverts while a price is stale. */
export const lensEquityAt = async (agentId: string, time: number): Promise<bigint> =>
  node.readContract({
    ...lens,
    functionName: 'currentEquityUsdc',
    args: [BigInt(agentId)],
    blockNumber: await blockAt(time),
  })

/** Returns the fields of a point of a vault's share prices at a time, as the vault says at that time's block. */
export async function worthAt(vault: `0x${string}`, time: number): Promise<Body> {
  const of = { address: vault, abi: erc4626Abi, blockNumber: await blockAt(time) } as const
  const [totalAssets, idleAssets, totalShares, sharePrice] = await Promise.all([
    node.readContract({ ...of, functionName: 'totalAssets' }),
    node.readContract({ ...of, abi: mandateVaultAbi, functionName: 'idleAssets' }),
    node.readContract({ ...of, functionName: 'totalSupply' }),
    node.readContract({ ...of, functionName: 'convertToAssets', args: [10n ** 12n] }),
  ])
  const figures = { totalAssets, idleAssets, totalShares, sharePriceUsdc: sharePrice }
  return Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, `${value}`]))
}
