import { encodeFunctionData, keccak256, parseAbi, stringToBytes, zeroAddress } from 'viem'
import { sourceOf } from '../chain/carried-prices.ts'
import type { Block, Chain } from '../chain/configured-chain.ts'
import { priceOracle } from '../chain/contracts.ts'
import { call, optional, readTree, type ValuesOf } from '../chain/read-tree.ts'
import type { Context } from '../context.ts'
import { logEvent } from '../log.ts'

/** IBlockUptimeFeed. */
const feedAbi = parseAbi([
  'function latestRoundData() view returns (uint80, int256, uint256, uint256, uint80)',
  'function observe()',
])
const DEADLINE_SECONDS = 60n

/** Returns calls that read the oracle's feed, and the last round of the one that was seen before. */
export const feedCalls = (chain: Chain) => ({
  feed: optional(call(priceOracle(chain), 'sequencerFeed', [])),
  known: chain.memory.uptimeFeed,
  round: optional(call({ address: chain.memory.uptimeFeed ?? zeroAddress, abi: feedAbi }, 'latestRoundData', [])),
})

/**
 * Records the end of a gap in the chain's blocks, from the updater's account, so that the grace period begins: any
 * account may. Where the updater posts prices, its posts do. `seen` are the values of `feedCalls` at a block, `now` is
 * in milliseconds.
 */
export async function observeGap(
  context: Pick<Context, 'config' | 'chain' | 'updater'>,
  { block, values: { feed, known, round } }: { block: Block; values: ValuesOf<ReturnType<typeof feedCalls>> },
  now: number,
): Promise<void> {
  const { config, chain, updater } = context
  const isProven = [...chain.memory.priceSources.byToken.keys()].some(
    token => sourceOf(chain, token).kind !== 'updater',
  )
  if (config.oracleUpdaterKey === undefined || !isProven) return
  const [address = zeroAddress] = feed ?? []
  if (address !== (known ?? zeroAddress)) {
    chain.memory.uptimeFeed = address
    return observeGap(context, await readTree(chain, feedCalls(chain)), now)
  }
  const [, , upSince, seenAt] = round ?? []
  // A gap that nobody has observed ends now, at every look.
  if (upSince === undefined || upSince !== seenAt) return
  const minute = Math.floor(now / 60_000)
  const outcome = await updater.relay({
    digest: keccak256(stringToBytes(`end of a gap ${chain.id} ${address} ${minute}`)),
    kind: 'checkpoint',
    by: { as: 'service', task: 'uptime' },
    groupNonce: `${minute}`,
    deadline: block.timestamp + DEADLINE_SECONDS,
    call: { to: address, data: encodeFunctionData({ abi: feedAbi, functionName: 'observe' }) },
  })
  if (outcome.state !== 'mined') logEvent('gap not observed', { state: outcome.state })
}
