/** How old a block is until it counts as final where nodes do not name a finalized one. */
export const FINAL_SECONDS = 300
/** How old any block is until it counts as final, whatever nodes name: their finality may stand still. */
export const MAX_REORG_SECONDS = 20_000
