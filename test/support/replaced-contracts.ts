import type { Address, Hex } from 'viem'
import { inject } from 'vitest'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import { chain } from './actors.ts'
import { node } from './history-oracle.ts'
import { createMigrations } from './migrations.ts'
import { appWith, call, deployment, type Fetch, type Input, type OperationId } from './surfaces.ts'

// What tests do on a chain whose oracle and router are replaced from time to time.

const { accounts, contracts, tokens, vaults } = deployment
const registry = { address: contracts.AgentRegistry, abi: agentRegistryAbi } as const
const { present, ...migrations } = createMigrations({ deployment, successors: inject('successors'), node }, chain)
export const { migrateOracle, migrateRouter } = migrations
export const router = async () => ({ address: (await present()).TradeRouter, abi: tradeRouterAbi }) as const
export const oracle = async () => ({ address: (await present()).PriceOracle, abi: priceOracleAbi }) as const

const services = new Map<string, Fetch>()
/**
 * Calls the service as its operator deploys it after a migration. Its indexer stays configured with the first
 * contracts.
 */
export async function ask(id: OperationId, input: Input = {}) {
  const variable = JSON.stringify({ ...contracts, ...(await present()) })
  const service = services.get(variable) ?? appWith({ CONTRACTS: variable })
  services.set(variable, service)
  return call(id, input, service)
}

/** Migrates back to the first contracts, which other test files use. */
export async function restoreFirst(): Promise<void> {
  const now = await present()
  if (now.TradeRouter !== contracts.TradeRouter) await migrateRouter()
  if (now.PriceOracle !== contracts.PriceOracle) await migrateOracle()
}

/** Posts a price to the present oracle. */
export async function postPrice(token: Address, price: bigint): Promise<void> {
  await chain.send(accounts.priceSetter, { ...(await oracle()), functionName: 'setPrice', args: [token, price] })
}

/** Posts a price that was observed some seconds ago. */
export async function postLate(token: Address, price: bigint, seconds: number): Promise<void> {
  const observedAt = BigInt(await chain.increaseTime(seconds))
  await chain.increaseTime(seconds)
  const args = [[token], [price], [observedAt]] as const
  await chain.send(accounts.priceSetter, { ...(await oracle()), functionName: 'post', args })
}

/** Posts the present prices again. */
export async function refreshPrices(): Promise<void> {
  const assets = Object.values(tokens)
  const now = await oracle()
  const held = await Promise.all(
    assets.map(asset => node.readContract({ ...now, functionName: 'peekPrice', args: [asset] })),
  )
  const args = [assets, held.map(([price]) => price)] as const
  await chain.send(accounts.priceSetter, { ...now, functionName: 'setPrices', args })
}

/** Lets agents of genesis be promoted from paper to real capital without a lock. */
export async function waiveFirstLoss(): Promise<void> {
  const terms = { firstLossBps: 0, maxWasteBps: 0 }
  await chain.administer({
    address: contracts.VaultTrackRegistry,
    abi: vaultTrackRegistryAbi,
    functionName: 'setVaultTrackRiskTerms',
    args: [vaults.genesis as Address, 1n, terms],
  })
}

/** Promotes an agent whatever it has done; without effect from the last track. */
export async function promote(agentId: string): Promise<void> {
  const lenient = '0x00000000000000000000000000000000000c817e'
  await node.request({ method: 'anvil_setCode', params: [lenient, '0x00'] } as never)
  const setCriteria = (criteria: Hex) =>
    chain.administer({ ...registry, functionName: 'setPromotionCriteria', args: [criteria] })
  await setCriteria(lenient)
  const track = await node.readContract({ ...registry, functionName: 'trackOf', args: [BigInt(agentId)] })
  await chain
    .send(accounts.keeper, { ...registry, functionName: 'promoteAgent', args: [BigInt(agentId), track + 1] })
    .catch(() => {})
  await setCriteria(contracts.PromotionCriteria as Hex)
}
