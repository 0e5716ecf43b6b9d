import type { TradingChain } from '../chain/client.ts'

/** Whose events an index holds: rows of other contracts are of no use to anybody. */
export const scopeOf = ({ id, contracts, trading }: TradingChain): string =>
  [id, contracts.AgentRegistry, trading.TradeRouter, trading.PositionManager].join(':')
