import { domainAbi } from '@agent-trading-service/protocol/typed-data'
import type { Address } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../../contracts-abi/allocation-manager.ts'
import { feeManagerAbi } from '../../contracts-abi/fee-manager.ts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { requestQueueAbi } from '../../contracts-abi/request-queue.ts'
import { tokenRegistryAbi } from '../../contracts-abi/token-registry.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { tradeRouterLensAbi } from '../../contracts-abi/trade-router-lens.ts'
import { vaultTrackRegistryAbi } from '../../contracts-abi/vault-track-registry.ts'
import type { Chain, TradingChain } from './configured-chain.ts'

// The contracts of a chain with their ABIs, as `call` expects them.

export const agentRegistry = ({ contracts }: Chain) => ({ address: contracts.AgentRegistry, abi: agentRegistryAbi })
export const vaultTrackRegistry = ({ contracts }: Chain) => ({
  address: contracts.VaultTrackRegistry,
  abi: vaultTrackRegistryAbi,
})
export const tokenRegistry = ({ contracts }: Chain) => ({ address: contracts.TokenRegistry, abi: tokenRegistryAbi })
export const priceOracle = ({ contracts }: Chain) => ({ address: contracts.PriceOracle, abi: priceOracleAbi })
export const feeManager = ({ contracts }: Chain) => ({ address: contracts.FeeManager, abi: feeManagerAbi })

export const tradeRouter = ({ trading }: TradingChain) => ({ address: trading.TradeRouter, abi: tradeRouterAbi })
export const tradeRouterLens = ({ trading }: TradingChain) => ({
  address: trading.TradeRouterLens,
  abi: tradeRouterLensAbi,
})
export const positionManager = ({ trading }: TradingChain) => ({
  address: trading.PositionManager,
  abi: positionManagerAbi,
})
export const allocationManager = ({ trading }: TradingChain) => ({
  address: trading.AllocationManager,
  abi: allocationManagerAbi,
})

export const requestQueue = (address: Address) => ({ address, abi: requestQueueAbi })
export const mandateVault = (address: Address) => ({ address, abi: mandateVaultAbi })
export const eip712Contract = (address: Address) => ({ address, abi: domainAbi })
