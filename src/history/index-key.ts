import type { Chain } from '../chain/configured-chain.ts'

/** Returns a key of an index's chain and contracts. Rows under another key are useless. */
export const indexKeyOf = ({ id, contracts, trading }: Chain): string =>
  [id, contracts.AgentRegistry, trading?.TradeRouter ?? '', trading?.PositionManager ?? ''].join(':')
