import { setTimeout as sleep } from 'node:timers/promises'
import { ACCOUNTS } from '../devnet/accounts.ts'
import { startAnvil } from '../devnet/anvil.ts'
import { usdPrice } from '../devnet/controls.ts'
import { Failure } from '../packages/cli/src/failure.ts'
import { readVenue } from '../packages/cli/src/tape/venue.ts'
import { createReader } from '../packages/cli/src/trading/create-reader.ts'
import { type EmbeddedMarket, openPlayer, playStep, pricesNow, readHead } from './play-market.ts'
import { venueOf } from './seed-venue.ts'
import type { Step, Tape } from './tape.ts'

/**
 * A copy of a public deployment on the embedded chain, in real time. `end` closes its market; `tape` returns what was
 * played so far.
 */
export type Mirror = EmbeddedMarket & { end(): void; tape(): Tape }

const DAY = 86_400
const POLL_MS = 1_000
const READ_TIMEOUT_SECONDS = 5

/**
 * Starts the embedded chain with the vaults, tokens, tracks, policies and prices of a deployment, which its steps
 * follow: one a second. The chain id is another one, so no signature is valid on both. Throws a failure if the
 * deployment cannot be mirrored.
 */
export async function startMirror(
  url: string,
  { chainId, baseUrl }: { chainId: number; baseUrl: string },
): Promise<Mirror> {
  const venue = await readVenue(url)
  if (venue.chainId === chainId)
    throw new Failure('refused', `${url} is on chain ${chainId}, the id of the mirror's own chain.`, {
      code: 'MIRROR_CHAIN_ID',
      remedy: `Choose another one, such as --chain-id ${chainId + 1}, so that no signature is valid on both.`,
    })
  const reader = createReader({ url, timeout: READ_TIMEOUT_SECONDS })
  const anvil = await startAnvil({
    chainId,
    accounts: ACCOUNTS,
    startsAt: Math.floor(Date.now() / 1000) - DAY,
    mines: false,
  })
  try {
    const player = await openPlayer(anvil, venueOf(venue), {
      baseUrl,
      hold: () => anvil.setMining(false),
      release: () => anvil.setMining(true),
      minesAtOnce: false,
    })
    const postedAt = new Map<string, string>()
    const steps: Step[] = []
    const last = { step: -1, time: 0, endsBar: true, isOver: false }

    /** Posts what the deployment has posted since; a price that is stale there stays so here. */
    async function follow(isFirst = false): Promise<void> {
      const { prices: quotes } = await reader.getPrices({})
      const prices = new Map<string, bigint>()
      for (const { symbol } of venue.tokens) {
        const quote = quotes[symbol]
        if (quote === undefined || quote.stale || postedAt.get(symbol) === quote.updatedAt) continue
        prices.set(symbol, usdPrice(quote.priceUsd))
      }
      last.endsBar = prices.size > 0 || isFirst
      if (last.endsBar) await playStep(player, { prices }, { time: Math.floor(Date.now() / 1000) })
      for (const symbol of prices.keys()) postedAt.set(symbol, quotes[symbol]?.updatedAt ?? '')
      last.time = (await readHead(player.socket)).timestamp
      last.step++
      if (last.endsBar) steps.push({ time: last.time, prices: new Map(player.prices), endsBar: true })
    }

    // The chain begins a day before, when the prices that are stale now were posted; its clock is this machine's from
    // here on.
    await follow(true)
    return {
      deployment: player.deployment,
      shift: 0,
      now: () => ({ ...last, keeperActs: true, ...pricesNow(player) }),
      nextBar: () => last.time + 1,
      async playStep() {
        await sleep(POLL_MS)
        // What is not read now is read a second later.
        await follow().catch(async error => {
          last.endsBar = false
          await player.release()
          console.error(`The mirror does not follow: ${error instanceof Error ? error.message : error}`)
        })
      },
      head: () => readHead(player.socket),
      end() {
        last.isOver = true
      },
      tape() {
        const end = { time: last.time, prices: new Map(player.prices), endsBar: true }
        return { symbols: [...player.prices.keys()], steps: [...steps, end], venue }
      },
      stop: anvil.stop,
    }
  } catch (error) {
    await anvil.stop()
    throw error
  }
}
