import { z } from 'zod'
import { catalogVault } from '../catalog/vault-texts.ts'
import type { Vault } from '../chain/listings.ts'
import { nameOf, TRACKS } from './agent.ts'
import { addressOut, asOf, bps, digits, usdc } from './primitives.ts'

export const vaultTrackConfig = z
  .object({
    vault: addressOut,
    trackId: z.int(),
    trackName: z.string(),
    initialAllocation: usdc('Cap that an agent starts with'),
    maxAllocation: usdc('Largest cap of an agent on this track'),
    maxDrawdownBps: bps('Drawdown that suspends eligibility; stored, not checked per intent'),
    maxTradeSizeBps: bps("Largest trade as a share of the vault's total assets"),
    maxDailyTurnoverBps: bps("Largest turnover of a day as a share of the vault's total assets; 0 is off"),
    maxDailyLossBps: bps(
      "Realized loss of a day, as a share of the agent's cap, at which new risk is refused; 0 is off",
    ),
    evaluationPeriod: digits('Evaluation period; seconds'),
    minTrades: z.int().meta({ description: 'Trades needed for promotion' }),
    promotionScore: z.int().meta({ description: 'Alpha score needed for promotion' }),
    active: z.boolean(),
    maxStopLossBps: bps('Deepest stop-loss trigger allowed; 0 is no bound'),
    minTakeProfitBps: bps('Lowest take-profit trigger allowed; 0 is no bound'),
    maxTakeProfitBps: bps('Highest take-profit trigger allowed; 0 is no bound'),
    requireStopLoss: z.boolean(),
    requireTakeProfit: z.boolean(),
  })
  .meta({ id: 'VaultTrackConfig', description: 'Risk policy of one track in one vault' })

export const vaultRecord = z
  .object({
    id: z.string().meta({ description: 'The slug; a vault is also addressable by its contract address' }),
    name: z.string(),
    slug: z.string(),
    tagline: z.string(),
    description: z.string(),
    vaultTrackConfigs: z.array(vaultTrackConfig),
    chainId: z.int(),
    contractAddress: addressOut,
    asset: addressOut.meta({ description: 'The notional asset, called USDC here' }),
    totalAssets: usdc("The vault's assets: idle USDC and held tokens at the last known prices"),
    idleAssets: usdc('USDC that is not invested'),
    tradingPaused: z.boolean(),
  })
  .meta({ id: 'Vault' })

export const vaultAnswer = z.object({ vault: vaultRecord, asOf }).meta({ id: 'VaultAnswer' })
export const vaultList = z
  .object({ chainId: z.int(), vaults: z.array(vaultRecord), total: z.int(), asOf })
  .meta({ id: 'VaultList' })

export function presentVault(chainId: number, vault: Vault): z.input<typeof vaultRecord> {
  const { slug, name, tagline, description } = catalogVault(vault)
  return {
    id: slug,
    name,
    slug,
    tagline,
    description,
    vaultTrackConfigs: vault.tracks.map(config => ({
      vault: config.vault,
      trackId: Number(config.trackId),
      trackName: nameOf(TRACKS, Number(config.trackId)),
      initialAllocation: `${config.initialAllocation}`,
      maxAllocation: `${config.maxAllocation}`,
      maxDrawdownBps: Number(config.maxDrawdownBps),
      maxTradeSizeBps: Number(config.maxTradeSizeBps),
      maxDailyTurnoverBps: Number(config.maxDailyTurnoverBps),
      maxDailyLossBps: Number(config.maxDailyLossBps),
      evaluationPeriod: `${config.evaluationPeriod}`,
      minTrades: Number(config.minTrades),
      promotionScore: Number(config.promotionScore),
      active: config.active,
      maxStopLossBps: Number(config.maxStopLossBps),
      minTakeProfitBps: Number(config.minTakeProfitBps),
      maxTakeProfitBps: Number(config.maxTakeProfitBps),
      requireStopLoss: config.requireStopLoss,
      requireTakeProfit: config.requireTakeProfit,
    })),
    chainId,
    contractAddress: vault.address,
    asset: vault.asset,
    totalAssets: `${vault.totalAssets}`,
    idleAssets: `${vault.idleAssets}`,
    tradingPaused: vault.tradingPaused,
  }
}
