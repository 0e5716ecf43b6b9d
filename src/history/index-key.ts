import type { Chain } from '../chain/chain.ts'

/** Whose events an index holds: rows of other contracts are of no use to anybody. */
export const scopeOf = ({ id, contracts, trading }: Chain): string =>
  [id, contracts.AgentRegistry, trading?.TradeRouter ?? '', trading?.PositionManager ?? ''].join(':')
