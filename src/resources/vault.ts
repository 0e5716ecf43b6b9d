import type { TradePolicy } from '@agent-trading-service/protocol/trade-policy'
import { type NamedVault, onChainName, vaultSlug } from '@agent-trading-service/protocol/vault-slug'
import { z } from 'zod'
import type { Vault } from '../chain/read-vaults-and-tokens.ts'
import { nameOf, TRACKS } from './agent.ts'
import { exitBounds } from './exit-rule.ts'
import { present } from './present.ts'
import { addressOut, asOf, bps, digits, usdc } from './primitives.ts'

export const vaultTrackConfig = z
  .object({
    vault: addressOut,
    trackId: z.int(),
    trackName: z.string(),
    initialAllocation: usdc('Allocation cap of a new agent'),
    maxAllocation: usdc('Maximum allocation cap on this track'),
    maxDrawdownBps: bps('Drawdown limit; stored, but not checked per intent'),
    maxTradeSizeBps: bps("Maximum trade size relative to the vault's total assets"),
    maxDailyTurnoverBps: bps("Maximum daily turnover relative to the vault's total assets; 0 means no limit"),
    maxDailyLossBps: bps(
      "Realized daily loss, relative to the agent's allocation cap, that blocks new risk; 0 means no limit",
    ),
    evaluationPeriod: digits('Evaluation period in seconds'),
    minTrades: z.int().describe('Trades required for promotion'),
    promotionScore: z.int().describe('Alpha score required for promotion'),
    active: z.boolean(),
    ...exitBounds.shape,
  })
  .meta({ id: 'VaultTrackConfig', description: 'Risk policy of one track in one vault' })

const vaultRecord = z
  .object({
    id: z.string().describe('The slug; a vault can also be addressed by its contract address'),
    name: z.string(),
    slug: z.string(),
    tagline: z.string(),
    description: z.string(),
    vaultTrackConfigs: z.array(vaultTrackConfig),
    chainId: z.int(),
    contractAddress: addressOut,
    asset: addressOut.describe('The notional asset, called USDC in field names'),
    totalAssets: usdc('Idle USDC plus held tokens at their last known prices'),
    idleAssets: usdc('USDC that is not invested'),
    tradingPaused: z.boolean(),
  })
  .meta({ id: 'Vault' })

export const vaultResponse = z.object({ vault: vaultRecord, asOf }).meta({ id: 'VaultAnswer' })
export const vaultList = z
  .object({ chainId: z.int(), vaults: z.array(vaultRecord), total: z.int(), asOf })
  .meta({ id: 'VaultList' })

export function presentVault(chainId: number, vault: Vault): z.input<typeof vaultRecord> {
  const slug = vaultSlug(vault)
  return present(vaultRecord, {
    ...vault,
    ...vaultTexts(vault),
    id: slug,
    slug,
    vaultTrackConfigs: vault.tracks.map(config =>
      present(vaultTrackConfig, { ...config, trackName: nameOf(TRACKS, Number(config.trackId)) }),
    ),
    chainId,
    contractAddress: vault.address,
  })
}

/** Returns what a model compares vaults by: the limits of the track on which every agent begins. */
export function briefVault(vault: z.input<typeof vaultRecord>) {
  const { id, name, contractAddress, totalAssets, tradingPaused, vaultTrackConfigs } = vault
  const [track] = vaultTrackConfigs
  return {
    id,
    name,
    contractAddress,
    totalAssets,
    tradingPaused,
    firstTrack: track && {
      trackName: track.trackName,
      active: track.active,
      initialAllocation: track.initialAllocation,
      maxTradeSizeBps: track.maxTradeSizeBps,
      maxDailyLossBps: track.maxDailyLossBps,
      maxStopLossBps: track.maxStopLossBps,
    },
  }
}

type VaultText = { name: string; tagline: string; description: string }

/** Texts that are not on chain, by the slug of the vault's on-chain name. */
const TEXTS: Record<string, VaultText> = {
  genesis: {
    name: 'Genesis',
    tagline: 'Large caps, the first season',
    description:
      'The vault of the first season: liquid large-cap tokens, one mandate for every new agent, three tracks from CHALLENGE to PRIME.',
  },
  frontier: {
    name: 'Frontier',
    tagline: 'Growth and high volatility',
    description:
      'Growth tokens with wider swings: smaller trades, tighter daily loss limits and deeper stop-losses than Genesis.',
  },
}

/** Returns the texts of a vault. A vault without texts gets its on-chain name and empty texts. */
const vaultTexts = (vault: NamedVault): VaultText =>
  TEXTS[vaultSlug(vault)] ?? { name: onChainName(vault) || vault.address, tagline: '', description: '' }

export const tradePolicy = z
  .object({
    maxEntrySlippageBps: bps('Largest maxSlippageBps that an open or add may sign'),
    maxExitSlippageBps: bps('How far below the oracle value a sale may end at most'),
    exitSlippageStartBps: bps('Slippage of an exit when it becomes due; also the least that a reduce gets'),
    exitWideningSeconds: digits('Seconds in which the slippage of a due exit grows from its start to its maximum'),
    minTradeUsdc: usdc('Smallest open, add or partial reduce; 0 means no limit'),
    maxSpotDeviationBps: bps("Largest distance of the pool's price from the oracle price; 0 means no limit"),
    maxTwapDeviationBps: bps(
      "Largest distance of the pool's time-weighted price from the oracle price; 0 means no limit",
    ),
    twapWindowSeconds: digits('Length of the time-weighted average in seconds'),
    maxDeadlineSeconds: digits('How far ahead the deadline of an intent may be, in seconds; 0 means no limit'),
  })
  .meta({ id: 'TradePolicy', description: "The vault's limits of prices, sizes and deadlines on the agent's track" })

export const presentTradePolicy = (policy: TradePolicy): z.input<typeof tradePolicy> =>
  present(tradePolicy, { ...policy, twapWindowSeconds: policy.twapWindow })
