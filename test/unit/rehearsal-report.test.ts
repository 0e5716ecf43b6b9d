import { describe, expect, it } from 'vitest'
import { programOf } from '../../rehearsal/agent-under-test.ts'
import { type AgentRecord, buildReport, type PlayedMarket, passes, reportJson } from '../../rehearsal/report.ts'
import { reportPage } from '../../rehearsal/report-page.ts'
import { judge, parseRequirement } from '../../rehearsal/requirement.ts'
import { summaryOf } from '../../rehearsal/summary.ts'

const usd = (price: number) => BigInt(price) * 10n ** 8n
const market: PlayedMarket = {
  times: [1_772_000_000, 1_772_000_300, 1_772_000_600],
  prices: { AAPL: [usd(200), usd(200), usd(200)], NVDA: [usd(100), usd(50), usd(120)] },
  decimals: { AAPL: 18, NVDA: 18 },
}
const setting = {
  market: 'tape day.csv',
  seed: 7,
  tapeHash: 'ab'.repeat(32),
  notes: ['day.csv: 3 prices were rounded.'],
  versions: { service: '0.1.0' },
}
const opened = {
  timestamp: '1772000100',
  type: 'PositionOpened',
  source: 'intent',
  positionId: '1',
  symbol: 'NVDA',
  usdcAmount: '500000000',
  tokenAmount: `${10n ** 19n}`,
  priceUsdc: '50000000',
  realizedPnlUsdc: null,
  triggerType: null,
  triggerBps: null,
  note: 'cheap <script>alert(1)</script>',
}
const fired = {
  ...opened,
  timestamp: '1772000500',
  type: 'ExitExecuted',
  source: 'automation',
  usdcAmount: '600000000',
  realizedPnlUsdc: '100000000',
  triggerType: 'TakeProfit',
  triggerBps: 2_000,
  note: null,
}
const record: AgentRecord = {
  name: 'node agent.mjs',
  allocationUsdc: 1_000_000_000n,
  maxDrawdownBps: 1_000,
  trades: [opened, fired],
  orders: [],
  statistics: {
    trades: 2,
    winRateBps: 10_000,
    sharpeMilli: null,
    executionCost: { costUsdc: '1500000', costBps: 14 },
    maxDrawdown: null,
    pnlByDay: [],
  },
  promotion: { eligible: false, alphaScore: 40, blockers: ['TooFewTrades: 1 of 4 trades so far'] },
  refusals: { MARKET_CLOSED: 2 },
  limits: { maxTradeSize: 1 },
  exitCode: 0,
}
const idle: AgentRecord = { ...record, name: 'idle', trades: [], refusals: {}, limits: {} }
const reportFor = (records: AgentRecord[], bar = 'return>0') =>
  buildReport(setting, market, records, figures => judge(parseRequirement(bar), figures))

describe('the report of a rehearsal', () => {
  it('the report of a rehearsal values cash and tokens at the prices of each bar, next to buy and hold', () => {
    const [agent] = reportFor([record]).agents
    expect(agent?.equity.map(({ equityUsdc, holdUsdc }) => [equityUsdc, holdUsdc])).toEqual([
      [1_000_000_000n, 1_000_000_000n],
      [1_000_000_000n, 750_000_000n],
      [1_100_000_000n, 1_100_000_000n],
    ])
    expect(agent?.figures).toMatchObject({ return: 100_000n, excess: 0n, drawdown: 0n, pnl: 100_000_000n })
  })

  it('the report of a rehearsal measures a drawdown from the highest equity before it', () => {
    const holder = { ...record, trades: [{ ...opened, timestamp: '1772000000', tokenAmount: `${5n * 10n ** 18n}` }] }
    expect(reportFor([holder]).agents[0]?.figures.drawdown).toBe(250_000n)
  })

  it('the report of a rehearsal ranks agents by their return', () => {
    expect(reportFor([idle, record]).agents.map(({ name }) => name)).toEqual(['node agent.mjs', 'idle'])
  })

  it('the report of a rehearsal passes only if every agent meets the bar and its program ends well', () => {
    expect(passes(reportFor([record]))).toBe(true)
    expect(passes(reportFor([record, idle]))).toBe(false)
    expect(passes(reportFor([{ ...record, exitCode: 1 }]))).toBe(false)
  })

  it('the report of a rehearsal is JSON in which amounts are strings', () => {
    const { agents } = JSON.parse(reportJson(reportFor([record])))
    expect(agents[0].figures.pnl).toBe('100000000')
  })

  it('the report of a rehearsal fits a terminal of 80 columns and names seed, tape, versions and refusals', () => {
    const text = summaryOf(reportFor([record, idle], 'return>0 and drawdown<5%'))
    expect(Math.max(...text.split('\n').map(line => line.length))).toBeLessThanOrEqual(80)
    for (const part of [
      'seed 7',
      setting.tapeHash,
      ...setting.notes,
      'service 0.1.0',
      'refused: Market closed (MARKET_CLOSED ×2)',
      'limits hit: Max trade size (maxTradeSize ×1)',
      'MISSED',
    ])
      expect(text).toContain(part)
  })

  it('the report of a rehearsal is one page that loads nothing and shows the notes of agents as text', () => {
    const page = reportPage(reportFor([record, idle]), market)
    expect(page).not.toMatch(/<script|<link|url\(|@import|https?:/)
    expect(page).toContain('cheap &lt;script&gt;')
    expect(page).toContain('Take-profit at 20 %')
    expect(page).toContain('<li>1 of 4 trades so far</li>')
    expect(page).toContain('title="MARKET_CLOSED">Market closed</span>')
  })

  it('the report of a rehearsal counts exits by what caused them, and says what became of each order', () => {
    const order = {
      placedAt: '1772000100',
      endedAt: '1772000400',
      side: 'open',
      symbol: 'NVDA',
      usdcAmount: '90000000',
      exitBps: 0,
      condition: 'atOrBelow',
      price: '95.5',
      trailBps: 0,
      state: 'expired',
      endReason: 'expired',
      partsDone: 0,
      parts: 1,
      waitsFor: null,
      note: null,
    }
    const busy = {
      ...record,
      trades: [opened, fired, { ...fired, source: 'order' }, { ...fired, source: 'intent' }],
      orders: [
        order,
        {
          ...order,
          endedAt: null,
          state: 'open',
          endReason: null,
          waitsFor: 'The price is 99; at most 95.5 is needed.',
        },
        { ...order, state: 'filled', endReason: null, partsDone: 1 },
      ],
    }
    const report = reportFor([busy])
    const text = summaryOf(report)
    expect(text).toContain('1 purchases; exits: 1 by the ladder, 1 by orders, 1 by hand')
    expect(text).toContain('orders: 1 expired, 1 still waiting, 1 filled')
    const page = reportPage(report, market)
    expect(page).toContain('Exits: 1 by the ladder, 1 by orders, 1 by hand.')
    expect(page).toContain('Buy NVDA for 90.00 USDC at 95.5 or less')
    expect(page).toContain('The price is 99; at most 95.5 is needed.')
  })

  it('the report of a rehearsal draws no line through a night', () => {
    const times = [0, 1, 2, 200, 201, 202].map(bar => 1_772_000_000 + 300 * bar)
    const prices = { AAPL: times.map(() => usd(200)), NVDA: times.map((_, bar) => usd(100 + bar)) }
    const twoDays = { ...market, times, prices }
    const report = buildReport(setting, twoDays, [record], () => [])
    const [equity = ''] = /<path class="line series-1" d="[^"]*"/.exec(reportPage(report, twoDays)) ?? []
    expect(equity.match(/M/g)).toHaveLength(2)
    expect(equity.match(/L/g)).toHaveLength(4)
  })
})

it('an agent has the name of the file that it runs, with its arguments, or that of its command', () => {
  const flags = ['--conditions=@agent-trading-service/source', 'examples/momentum.ts', '--fast']
  expect(programOf(['node', ...flags])).toEqual({ name: 'examples/momentum.ts --fast', command: 'node', args: flags })
  expect(programOf(['./agent', '--fast']).name).toBe('./agent --fast')
})
