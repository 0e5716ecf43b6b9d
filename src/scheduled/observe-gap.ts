import { encodeFunctionData, keccak256, parseAbi, stringToBytes, zeroAddress } from 'viem'
import { sourceOf } from '../chain/carried-prices.ts'
import type { Chain } from '../chain/configured-chain.ts'
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
  const { block, address, round } = await readFeed(chain)
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

/** Reads the oracle's feed and its last round, with one call if it is the feed that was last seen. */
async function readFeed(chain: Chain) {
  for (;;) {
    const address = chain.memory.uptimeFeed ?? zeroAddress
    const { block, values } = await readTree(chain, {
      feed: optional(call(priceOracle(chain), 'sequencerFeed', [])),
      round: optional(call({ address, abi: feedAbi }, 'latestRoundData', [])),
    })
    const [named = zeroAddress] = values.feed ?? []
    if (named === address) return { block, address, round: values.round }
    chain.memory.uptimeFeed = named
  }
}
