import { formatUnits } from 'viem'
import type { z } from 'zod'
import { USDC_DECIMALS } from './intent.ts'
import type { vaultList, vaultTrackConfig } from './vault.ts'

// Everything that markdown or the HTML within it could read as its own; a line of a list or a table stays one line.
const SPECIAL = /[\\`*_{}[\]()#+\-.!|<>~&:]/g
const LINE_END = /[\r\n\u2028\u2029]+/g
const escaped = (text: string) => text.replace(LINE_END, ' ').replace(SPECIAL, '\\$&')

const usdc = (baseUnits: string) => `${escaped(formatUnits(BigInt(baseUnits), USDC_DECIMALS))} USDC`
const percent = (bps: number) => `${escaped(`${bps / 100}`)} %`
const bound = (bps: number) => (bps === 0 ? 'none' : percent(bps))

/** The list of vaults as markdown: one section per vault with a table of its tracks. */
export function vaultsMarkdown({ chainId, vaults, asOf }: z.input<typeof vaultList>): string {
  const sections = vaults.map(vault =>
    [
      `## ${escaped(vault.name)}`,
      '',
      ...(vault.tagline === '' ? [] : [`*${escaped(vault.tagline)}*`, '']),
      ...(vault.description === '' ? [] : [escaped(vault.description), '']),
      `- id: \`${vault.id}\``,
      `- contract: \`${vault.contractAddress}\``,
      `- assets: ${usdc(vault.totalAssets)}, of which idle ${usdc(vault.idleAssets)}`,
      `- trading: ${vault.tradingPaused ? 'paused' : 'open'}`,
      '',
      '| track | active | allocation | largest trade | turnover a day | loss a day | stop-loss to | take-profit | required |',
      '|---|---|---|---|---|---|---|---|---|',
      ...vault.vaultTrackConfigs.map(trackRow),
    ].join('\n'),
  )
  return [
    '# Vaults',
    `Chain ${chainId}, as of block ${asOf.blockNumber}. Limits in percent: trade and turnover of the vault's assets, loss of the agent's allocation.`,
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
