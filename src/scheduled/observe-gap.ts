import { encodeFunctionData, keccak256, parseAbi, stringToBytes, zeroAddress } from 'viem'
import { sourceOf } from '../chain/carried-prices.ts'
import { priceOracle } from '../chain/contracts.ts'
import { call, optional, readTree } from '../chain/read-tree.ts'
import type { Context } from '../context.ts'
import { logEvent } from '../log.ts'

/** IBlockUptimeFeed. */
const feedAbi = parseAbi([
  'function latestRoundData() view returns (uint80, int256, uint256, uint256, uint80)',
  'function observe()',
])
const DEADLINE_SECONDS = 60n

/**
 * Records the end of a gap in the chain's blocks, from the updater's account, so that the grace period begins: any
 * account may. Where the updater posts prices, its posts do. `now` is in milliseconds.
 */
export async function observeGap({ config, chain, updater }: Context, now: number): Promise<void> {
  const isProven = [...chain.memory.priceSources.byToken.keys()].some(
    token => sourceOf(chain, token).kind !== 'updater',
  )
  if (config.oracleUpdaterKey === undefined || !isProven) return
  const { values } = await readTree(chain, { feed: optional(call(priceOracle(chain), 'sequencerFeed', [])) })
  const [address = zeroAddress] = values.feed ?? []
  if (address === zeroAddress) return
  const feed = { address, abi: feedAbi }
  const { block, values: state } = await readTree(chain, { round: optional(call(feed, 'latestRoundData', [])) })
  const [, , upSince, seenAt] = state.round ?? []
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
