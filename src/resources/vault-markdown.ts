import { formatUnits } from 'viem'
import type { z } from 'zod'
import { escaped } from './markdown-text.ts'
import { USDC_DECIMALS } from './primitives.ts'
import type { vaultList, vaultTrackConfig } from './vault.ts'

const usdc = (baseUnits: string) => `${escaped(formatUnits(BigInt(baseUnits), USDC_DECIMALS))} USDC`
const percent = (bps: number) => `${escaped(`${bps / 100}`)} %`
const bound = (bps: number) => (bps === 0 ? 'none' : percent(bps))

/** Renders the list of vaults as Markdown: one section per vault with a table of its tracks. */
export function vaultsMarkdown({ chainId, vaults, asOf }: z.input<typeof vaultList>): string {
  const sections = vaults.map(vault =>
    [
      `## ${escaped(vault.name)}`,
      '',
      ...(vault.tagline === '' ? [] : [`*${escaped(vault.tagline)}*`, '']),
      ...(vault.description === '' ? [] : [escaped(vault.description), '']),
      `- id: \`${vault.id}\``,
      `- contract: \`${vault.contractAddress}\``,
      `- assets: ${usdc(vault.totalAssets)}, ${usdc(vault.idleAssets)} of it idle`,
      `- trading: ${vault.tradingPaused ? 'paused' : 'open'}`,
      '',
      '| track | active | allocation | max trade | max daily turnover | max daily loss | deepest stop-loss | take-profit | required |',
      '|---|---|---|---|---|---|---|---|---|',
      ...vault.vaultTrackConfigs.map(trackRow),
    ].join('\n'),
  )
  return [
    '# Vaults',
    `Chain ${chainId}, as of block ${asOf.blockNumber}. Trade and turnover limits are relative to the vault's assets, the loss limit to the agent's allocation.`,
    ...sections,
    '',
  ].join('\n\n')
}

const trackRow = (track: z.input<typeof vaultTrackConfig>) => {
  const required = [track.requireStopLoss && 'stop\\-loss', track.requireTakeProfit && 'take\\-profit'].filter(Boolean)
  const cells = [
    `${track.trackId} ${escaped(track.trackName)}`,
    track.active ? 'yes' : 'no',
    `${usdc(track.initialAllocation)} to ${usdc(track.maxAllocation)}`,
    percent(track.maxTradeSizeBps),
    bound(track.maxDailyTurnoverBps),
    bound(track.maxDailyLossBps),
    bound(track.maxStopLossBps),
    `${bound(track.minTakeProfitBps)} to ${bound(track.maxTakeProfitBps)}`,
    required.join(', ') || 'nothing',
  ]
  return `| ${cells.join(' | ')} |`
}
