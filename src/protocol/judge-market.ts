import { type Finding, findingsOf } from './finding.ts'

const oracle = findingsOf('oracle')
const vaults = findingsOf('vault')

/** The newest price of a token, and its age in seconds. */
export type PriceFact = { symbol: string; isQuoted: boolean; isStale: boolean; ageSeconds: bigint }

/**
 * Judges whether every token has a fresh price. Without any, nobody trades, unless the service is not deployed yet and will
 * post them.
 */
export function judgePrices(prices: readonly PriceFact[], isPostedLater: boolean): Finding[] {
  const isAllStale = prices.every(({ isStale }) => isStale) && !isPostedLater
  return prices.map(({ symbol, isQuoted, isStale, ageSeconds }) => {
    const fix = `ats admin price ${symbol}=<usd>, or POST /prices/refresh`
    const severity = isAllStale || (!isQuoted && !isPostedLater) ? 'wrong' : 'warning'
    if (!isQuoted) return oracle[severity](symbol, `${symbol} has never had a price.`, fix)
    if (!isStale) return oracle.ok(symbol, `The price of ${symbol} is ${ageSeconds} seconds old.`)
    return oracle[severity](symbol, `The price of ${symbol} is stale: it is ${ageSeconds} seconds old.`, fix)
  })
}

/** What a vault holds (base units of USDC), and whether it lets agents trade. */
export type VaultFact = {
  vault: string
  idleAssets: bigint
  totalAssets: bigint
  tradingPaused: boolean
  hasSimulatedTrack: boolean
}

const MIN_IDLE_BPS = 100n

/** Judges whether the vaults have USDC to trade with, and are open. */
export const judgeVaults = (facts: readonly VaultFact[]): Finding[] =>
  facts.flatMap(({ vault, idleAssets, totalAssets, tradingPaused, hasSimulatedTrack }) => {
    const found: Finding[] = []
    const fix = `ats admin deposit ${vault} <usdc>`
    if (idleAssets === 0n) {
      const sentence = hasSimulatedTrack
        ? `${vault} has no idle USDC: only agents with simulated capital can buy.`
        : `${vault} has no idle USDC, so no agent can buy.`
      found.push(hasSimulatedTrack ? vaults.warning(vault, sentence, fix) : vaults.wrong(vault, sentence, fix))
    } else if (idleAssets * 10_000n < totalAssets * MIN_IDLE_BPS)
      found.push(
        vaults.warning(vault, `${vault} has ${idleAssets} base units of idle USDC, less than 1 % of its assets.`, fix),
      )
    if (tradingPaused)
      found.push(vaults.warning(vault, `Trading in ${vault} is paused.`, `ats admin resume trading ${vault}`))
    return found.length > 0
      ? found
      : [vaults.ok(vault, `${vault} is open, with ${idleAssets} base units of idle USDC.`)]
  })

/** Judges whether new agents can register. */
export const judgeRegistry = (isPaused: boolean): Finding =>
  isPaused
    ? findingsOf('registry').warning('AgentRegistry', 'The agent registry is paused.', 'ats admin resume registry')
    : findingsOf('registry').ok('AgentRegistry', 'The agent registry is open.')

/**
 * Judges the block from which the index reads. `firstEvents` are the blocks of the first event of each contract at or
 * after it; undefined for a contract that has none, which was deployed before.
 */
export function judgeStartBlock(
  startBlock: bigint,
  head: bigint,
  firstEvents: readonly { contract: string; block: bigint | undefined }[],
): Finding {
  const { ok, warning, wrong } = findingsOf('start block')
  const [earliest] = firstEvents.flatMap(({ block }) => block ?? []).sort((a, b) => (a < b ? -1 : 1))
  const fix = 'set START_BLOCK to `deployedAtBlock` of the deployment file, then ats admin replay'
  if (startBlock > head) return wrong('START_BLOCK', `START_BLOCK is ${startBlock}; the newest block is ${head}.`, fix)
  const missed = firstEvents.filter(({ block }) => block === undefined).map(({ contract }) => contract)
  if (missed.length > 0)
    return wrong(
      'START_BLOCK',
      `START_BLOCK ${startBlock} is after the deployment of ${missed.join(', ')}, so the index misses events.`,
      fix,
    )
  if (earliest !== undefined && earliest - startBlock > MAX_EARLY_BLOCKS)
    return warning(
      'START_BLOCK',
      `START_BLOCK ${startBlock} is ${earliest - startBlock} blocks before the deployment, which the index reads for nothing.`,
      `set START_BLOCK to ${earliest}`,
    )
  return ok('START_BLOCK', `START_BLOCK ${startBlock} is at or shortly before the deployment.`)
}

/** An index reads that many empty blocks in a few requests. */
const MAX_EARLY_BLOCKS = 1_000_000n
