import type { Chain } from '../chain/configured-chain.ts'

/** Returns a key of the chain and contracts that an index is of. Rows under another key are worthless. */
export const indexKeyOf = ({ id, contracts, trading }: Chain): string =>
  [id, contracts.AgentRegistry, trading?.TradeRouter ?? '', trading?.PositionManager ?? ''].join(':')
