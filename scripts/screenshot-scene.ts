import type { Account } from '../devnet/accounts.ts'
import type { Deployment } from '../devnet/deployment.ts'
import { createScene, type Scene, type SceneAgent } from '../test/support/scene.ts'

/**
 * A page to look at, a text that it shows last, the account whose wallet it is connected to, and an action of an owner
 * that is under review there.
 */
export type ScenePage = { path: string; shows?: string; wallet?: Account; review?: string }
/** The pages that the scene fills, by name. */
export type ScenePages = Record<string, ScenePage>

const STEP_SECONDS = 6 * 3_600
const STEPS = 16
/** Prices in USD at the start, and how far one step moves them, in per mille. */
const START: Record<string, number> = { NVDA: 180.25, TSLA: 421.3, META: 641.75 }
const MOVES: Record<string, number[]> = {
  NVDA: [12, -6, 18, 9, -14, 7, 15, -9, 4, 21, -5, -11, 16, 8, -3, 10],
  TSLA: [-8, 14, 6, -19, 11, 17, -7, 5, 12, -16, 9, 13, -10, 6, 15, -4],
  META: [5, 8, -12, 14, 3, -9, 11, 6, -15, 12, 7, -4, 9, -8, 10, 6],
}
/** What happens to prices after the last trades, in per mille for each half hour. */
const AFTERMATH: Record<string, number[]> = {
  NVDA: [4, -3, 6, 5, -4, 7, 3, -2, 6, 5],
  TSLA: [-2, 1, -4, -3, 2, -5, 1, -3, -4, 2],
}
const AFTERMATH_SECONDS = 1_800
const AFTERMATH_STEPS = 10

/** Lives five days of three agents within a minute and returns the pages to look at. */
export async function playScene(serviceUrl: string, deployment: Deployment): Promise<ScenePages> {
  const scene = createScene(serviceUrl, deployment)
  const { chain, register, trade } = scene
  const meridian = await register(0, 'Meridian momentum', 'frontier')
  const kestrel = await register(1, 'Kestrel mean reversion', 'frontier')
  const northlight = await register(2, 'Northlight paper', 'genesis')
  const prices = new Map(Object.entries(START))

  async function nextStep(seconds: number, moves: Record<string, number[]>, step: number) {
    await chain.increaseTime(seconds)
    for (const [symbol, perMille] of Object.entries(moves)) {
      const next = (prices.get(symbol) ?? 0) * (1 + (perMille[step] ?? 0) / 1_000)
      prices.set(symbol, next)
      await chain.setPrice(symbol, next.toFixed(2))
    }
    await chain.refreshPrices()
  }
  const held = new Map<SceneAgent, string>()
  async function turn(agent: SceneAgent, symbol: string, usdcAmount: string, exits: string) {
    const positionId = held.get(agent)
    if (positionId !== undefined) {
      await trade(agent, 'reduce', { positionId, exitBps: '10000' })
      held.delete(agent)
      return
    }
    const { positionId: opened } = await trade(agent, 'open', { symbol, usdcAmount, exits })
    held.set(agent, opened)
  }
  const symbols = Object.keys(MOVES)
  for (let step = 0; step < STEPS; step++) {
    await nextStep(STEP_SECONDS, MOVES, step)
    const symbol = symbols[step % symbols.length] ?? 'NVDA'
    await turn(meridian, symbol, '2400', '-1500:10000,2500:10000')
    if (step % 2 === 0) await turn(kestrel, 'META', '1600', '-1200:10000,2000:10000')
    if (step % 3 === 0) await turn(northlight, 'NVDA', '4000', '-2000:10000,3000:10000')
  }
  await closeAll(trade, held)
  const open = await trade(meridian, 'open', {
    symbol: 'NVDA',
    usdcAmount: '1800',
    exits: '-400:5000,-800:10000,900:5000,1800:10000',
    note: 'Third higher low in five days: bought the breakout, half off at +9 %',
  })
  await trade(meridian, 'open', { symbol: 'TSLA', usdcAmount: '950', exits: '-600:10000,1500:10000' })
  await trade(kestrel, 'open', { symbol: 'META', usdcAmount: '1200', exits: '-700:10000,1400:10000' })
  await trade(meridian, 'order', { type: 'trailingStop', positionId: open.positionId, trailPercent: '5' })
  await trade(meridian, 'order', {
    type: 'limit',
    symbol: 'META',
    usdcAmount: '600',
    price: ((prices.get('META') ?? 0) * 0.97).toFixed(2),
    exits: '-700:10000,1400:10000',
  })
  for (let step = 0; step < AFTERMATH_STEPS; step++) await nextStep(AFTERMATH_SECONDS, AFTERMATH, step)
  const agent = `/app/agents/${meridian.agentId}`
  const [owner] = deployment.accounts.agents
  const { depositor } = deployment.accounts
  return {
    home: { path: '/' },
    vaults: { path: '/app/vaults' },
    vault: { path: '/app/vaults/frontier' },
    leaderboard: { path: '/app/leaderboard?period=all' },
    trades: { path: '/app/trades' },
    compare: { path: `/app/compare?agents=${[meridian, kestrel, northlight].map(({ agentId }) => agentId).join()}` },
    token: { path: `/app/tokens/NVDA?agent=${meridian.agentId}`, shows: 'order to sell' },
    agent: { path: agent, shows: 'below its peak' },
    position: { path: `${agent}/positions/${open.positionId}`, shows: 'order to sell' },
    intent: { path: `/app/intents/${open.digest}` },
    transaction: { path: `/app/transactions/${open.transactionHash}` },
    owner: {
      path: `/app/owner?agent=${meridian.agentId}`,
      ...(owner && { wallet: owner }),
      review: 'Stop and sell everything',
    },
    depositor: { path: '/app/depositor?vault=frontier', wallet: depositor },
    status: { path: '/app/status' },
    unknown: { path: '/app/agents/999' },
  }
}

async function closeAll(trade: Scene['trade'], held: Map<SceneAgent, string>) {
  for (const [agent, positionId] of held) await trade(agent, 'reduce', { positionId, exitBps: '10000' })
}
