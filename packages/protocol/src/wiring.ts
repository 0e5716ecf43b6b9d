/** A getter of a contract that returns the address of another one. */
export type WiringRule = {
  contract: string
  getter: string
  target: string
  /** The admin's call that corrects it; without one the contract cannot be changed. */
  correction?: string
}

const rule = (contract: string, getter: string, target: string, correction?: string): WiringRule => ({
  contract,
  getter,
  target,
  ...(correction !== undefined && { correction }),
})

const setter = (contract: string, functionName: string, target: string) =>
  rule(
    contract,
    `${functionName.slice('set'.length, 'set'.length + 1).toLowerCase()}${functionName.slice('set'.length + 1)}`,
    target,
    `${contract}.${functionName}("${target}")`,
  )

/** Which contract each contract must name. Contracts that a deployment lacks are left out. */
export const wiringRules: WiringRule[] = [
  rule('AgentRegistry', 'vaultTrackRegistry', 'VaultTrackRegistry'),
  rule('AgentRegistry', 'allocationManager', 'AllocationManager'),
  rule('AgentRegistry', 'feeManager', 'FeeManager'),
  rule('AgentRegistry', 'erc8004IdentityRegistry', 'ERC8004IdentityRegistry'),
  setter('AgentRegistry', 'setPromotionCriteria', 'PromotionCriteria'),
  setter('AgentRegistry', 'setOwnerControls', 'OwnerControls'),
  setter('AgentRegistry', 'setOrderBook', 'OrderBook'),
  rule('AllocationManager', 'vaultTrackRegistry', 'VaultTrackRegistry'),
  setter('AllocationManager', 'setAgentRegistry', 'AgentRegistry'),
  setter('AllocationManager', 'setTradeRouter', 'TradeRouter'),
  rule('FeeManager', 'feeAsset', 'USDC'),
  setter('FeeManager', 'setAgentRegistry', 'AgentRegistry'),
  rule('OrderBook', 'agentRegistry', 'AgentRegistry', 'AgentRegistry.setOrderBook("<contract>")'),
  rule('OrderBook', 'tradeRouter', 'TradeRouter'),
  rule('OwnerControls', 'agentRegistry', 'AgentRegistry'),
  rule('OwnerControls', 'tradeRouter', 'TradeRouter'),
  rule('PositionManager', 'agentRegistry', 'AgentRegistry'),
  rule('PositionManager', 'vaultTrackRegistry', 'VaultTrackRegistry'),
  setter('PositionManager', 'setTradeRouter', 'TradeRouter'),
  setter('TokenRegistry', 'setPriceOracle', 'PriceOracle'),
  rule('TradeRouter', 'usdc', 'USDC'),
  rule('TradeRouter', 'agentRegistry', 'AgentRegistry'),
  rule('TradeRouter', 'allocationManager', 'AllocationManager'),
  rule('TradeRouter', 'positionManager', 'PositionManager'),
  rule('TradeRouter', 'vaultTrackRegistry', 'VaultTrackRegistry'),
  setter('TradeRouter', 'setSwapAdapter', 'SwapAdapter'),
  setter('TradeRouter', 'setTradePolicy', 'TradePolicy'),
  rule('TradeRouterLens', 'tradeRouter', 'TradeRouter'),
  rule('SwapAdapter', 'usdc', 'USDC'),
  rule('SwapAdapter', 'tradeRouter', 'TradeRouter'),
]

/** The same for a vault. */
export const vaultWiringRules = (slug: string): WiringRule[] => [
  rule(slug, 'asset', 'USDC'),
  rule(slug, 'tokenRegistry', 'TokenRegistry'),
  rule(slug, 'priceOracle', 'PriceOracle', `${slug}.syncPriceOracle()`),
  rule(slug, 'tradeRouter', 'TradeRouter', `${slug}.setTradeRouter("TradeRouter")`),
]

/** The contracts with a default admin; vaults have one too. */
export const administeredContracts = [
  'AgentRegistry',
  'VaultTrackRegistry',
  'AllocationManager',
  'FeeManager',
  'TokenRegistry',
  'PriceOracle',
  'PositionManager',
  'TradeRouter',
  'TradePolicy',
  'SwapAdapter',
] as const
