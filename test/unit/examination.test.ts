import { once } from 'node:events'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { decodeClaim } from '@agent-trading-service/protocol/examination-claim'
import { type Address, encodeAbiParameters, keccak256, sha256, stringToHex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, it, vi } from 'vitest'
import { devnetAccounts } from '../../devnet/accounts.ts'
import { runProgram } from '../../rehearsal/agent-under-test.ts'
import {
  certify,
  checkCertificate,
  checkOrigin,
  claimOf,
  describeResult,
  parseCertificate,
} from '../../rehearsal/certificate.ts'
import { pooledSharpe, type RunRecord, recordRun, statisticsOf } from '../../rehearsal/examination.ts'
import { examinationPage } from '../../rehearsal/examination-page.ts'
import { conclusionOf, examinationText, percent } from '../../rehearsal/examination-text.ts'
import { declareAgent } from '../../rehearsal/plan-examination.ts'
import { costOfDelay, lotsOf, randomProfits, rankAmong } from '../../rehearsal/random-entries.ts'
import { buildReport, type PlayedMarket, type ReportedTrade } from '../../rehearsal/report.ts'

const BARS = 200
const usd = (price: number) => BigInt(Math.round(price * 1e8))
const market: PlayedMarket = {
  times: Array.from({ length: BARS }, (_, bar) => 1_772_000_000 + 3_600 * bar),
  prices: {
    NVDA: Array.from({ length: BARS }, (_, bar) => usd(100 + bar)),
    AAPL: Array.from({ length: BARS }, (_, bar) => usd(100 + 20 * Math.sin(bar / 7))),
  },
  decimals: { NVDA: 18, AAPL: 18 },
}
const tradeAt = (bar: number, facts: Partial<ReportedTrade>): ReportedTrade => ({
  timestamp: `${market.times[bar]}`,
  type: 'PositionOpened',
  source: 'intent',
  positionId: '1',
  symbol: 'NVDA',
  usdcAmount: '100000000',
  tokenAmount: `${10n ** 18n}`,
  priceUsdc: '100000000',
  realizedPnlUsdc: null,
  triggerType: null,
  triggerBps: null,
  note: null,
  ...facts,
})
const trades = [
  tradeAt(0, {}),
  tradeAt(50, {
    type: 'ExitExecuted',
    source: 'automation',
    tokenAmount: `${4n * 10n ** 17n}`,
    usdcAmount: '59000000',
  }),
]
const report = buildReport(
  { market: 'seed-1', seed: 1, tapeHash: 'ab'.repeat(32), notes: [], versions: {} },
  market,
  [
    {
      name: 'node agent.mjs',
      allocationUsdc: 1_000_000_000n,
      maxDrawdownBps: 1_000,
      trades,
      orders: [],
      statistics: {
        trades: 2,
        capital: 'real',
        winRateBps: null,
        sharpeMilli: null,
        executionCost: { costUsdc: '200000', costBps: 12 },
        maxDrawdown: null,
        pnlByDay: [],
      },
      promotion: { eligible: false, alphaScore: null, blockers: [] },
      refusals: { MARKET_CLOSED: 3 },
      limits: {},
      exitCode: 0,
    },
  ],
  () => [],
)
const spec = { id: 'seed-1', seed: 1, market: { kind: 'generated', generator: 'gbm', seed: 1 } } as const
const record = recordRun(spec, report, market)
/** Twenty runs with daily returns around a mean. */
const runsWith = (daily: number, rankAmongRandom: number): RunRecord[] =>
  Array.from({ length: 20 }, (_, run) => {
    const dailyEquity = [1_000]
    for (let day = 0; day < 20; day++)
      dailyEquity.push((dailyEquity.at(-1) ?? 0) * (1 + daily + 0.01 * Math.sin(7 * run + day * day)))
    return { ...record, dailyEquity, return: (dailyEquity.at(-1) ?? 0) / 1_000 - 1, rankAmongRandom }
  })

describe('the record of a run', () => {
  it('the record of a run splits positions into lots that were sold, and what is held until the end', () => {
    const lots = lotsOf(trades, market)
    expect(lots.map(({ from, to }) => [from, to])).toEqual([
      [0, 50],
      [0, BARS - 1],
    ])
    expect(lots.map(({ usdc }) => usdc)).toEqual([expect.closeTo(40, 9), expect.closeTo(60, 9)])
  })

  it('the record of a run has its return, its costs by what they were paid for, and what dearer or later trades leave', () => {
    const equity = 1_000 - 100 + 59 + 0.6 * 299
    expect(record.return).toBeCloseTo(equity / 1_000 - 1, 9)
    expect(record.costs.poolFees).toBeCloseTo(159 * 0.0005, 9)
    expect(record.costs.bounties).toBeCloseTo(0.059, 9)
    expect(record.costs.poolFees + record.costs.bounties + record.costs.impact).toBeCloseTo(0.2, 9)
    expect(record.returnIf['5 bps dearer']).toBeCloseTo(record.return - (159 * 0.0005) / 1_000, 9)
    // The purchase would have paid 101 instead of 100; the exit fires where it did.
    expect(costOfDelay(trades, market, 1)).toBeCloseTo(1, 9)
    expect(record.refusals).toBe(3)
  })

  it('random agents have the same lots in other places, and the same ones for the same seed', () => {
    const lots = lotsOf(trades, market)
    const draw = (seed: number) => randomProfits(lots, market, { draws: 50, seed, costRate: 0.001 })
    expect(draw(1)).toEqual(draw(1))
    expect(draw(1)).not.toEqual(draw(2))
    expect(rankAmong(1, [0, 1, 2, 3])).toBe(0.375)
    // A lot that is held over all bars has no other place than another token.
    const held = randomProfits([{ symbol: 'NVDA', from: 0, to: BARS - 1, usdc: 100 }], market, {
      draws: 50,
      seed: 1,
      costRate: 0,
    })
    expect(new Set(held.map(profit => profit.toFixed(6))).size).toBe(2)
  })
})

describe('an examination', () => {
  it.each([
    ['An edge', 0.004, 0.8],
    ['No edge in its choices', 0.004, 0.5],
    ['Better than random entries', 0, 0.8],
    ['Luck is enough', 0, 0.5],
  ])('an examination says: %s', (words, daily, rank) => {
    const runs = runsWith(daily, rank)
    expect(conclusionOf(statisticsOf(runs, [pooledSharpe(runs) ?? 0]))).toContain(words)
  })

  it('an examination counts variants: a result that is good once is luck as the best of a thousand', () => {
    const runs = runsWith(0.0008, 0.8)
    const sharpe = pooledSharpe(runs) ?? 0
    const spread = Array.from({ length: 999 }, (_, variant) => 0.1 * Math.sin(variant * variant))
    expect(conclusionOf(statisticsOf(runs, [sharpe]))).toContain('An edge')
    expect(conclusionOf(statisticsOf(runs, [sharpe, ...spread]))).toContain('the best of 1000 variants tried')
  })

  it('an examination counts a tape once, however often it is played in disguise or in windows', () => {
    const [run] = runsWith(0.0008, 0.8) as [RunRecord]
    const as = (kind: 'original' | 'window' | 'disguised') => ({
      ...run,
      spec: { id: kind, seed: 1, market: { kind, index: 1, seed: 1 } as RunRecord['spec']['market'] },
    })
    const played = (...runs: RunRecord[]) => statisticsOf(runs, [pooledSharpe(runs) ?? 0])
    const { byMarket: _, ...once } = played(as('original'))
    const disguised = played(as('original'), ...Array(50).fill(as('disguised')))
    expect(disguised).toMatchObject({ ...once, runs: 51, trades: 51 * once.trades })
    expect(disguised.byMarket.disguised?.runs).toBe(50)
    expect(played(as('window'), as('original'))).toMatchObject({ ...once, runs: 2, trades: 2 * once.trades })
  })

  it('an examination counts runs that reach the drawdown limit of the track as ruined', () => {
    const runs = runsWith(0, 0.5).map((run, index) => ({ ...run, drawdown: index < 5 ? 0.1 : 0.05 }))
    expect(statisticsOf(runs, [0]).ruined).toMatchObject({ share: 0.25 })
  })

  it('an examination fits a terminal of 80 columns, and its page loads nothing', () => {
    const runs = runsWith(0.004, 0.8)
    const statistics = statisticsOf(runs, [0.1])
    const lines = examinationText('node agent.mjs', statistics).split('\n')
    expect(Math.max(...lines.map(line => line.length))).toBeLessThanOrEqual(80)
    const page = examinationPage('node <agent>', runs, statistics)
    expect(page).not.toMatch(/<script|<link|url\(|@import|https?:/)
    expect(page).toContain('Examination of node &lt;agent&gt;')
  })
})

it('an examination of many runs has a page', () => {
  const runs = Array.from({ length: 15_000 }, () => record)
  expect(examinationPage('agent', runs, statisticsOf([record], [0]))).toContain('Returns of the runs')
})

it('an examination writes zero without a sign', () => {
  expect([-0.000_04, 0, -0.000_05, -0.012].map(percent)).toEqual(['0.00 %', '0.00 %', '-0.01 %', '-1.20 %'])
})

describe('a certificate', () => {
  const plan = { seeds: 1, days: 3, kinds: ['gbm'], allHours: false, windows: 0, disguises: 0 } as const
  const result = describeResult({
    agent: declareAgent(['node', 'examples/momentum.ts']),
    plan,
    markets: 'ab'.repeat(32),
    records: [record],
    statistics: statisticsOf([record], [0.1]),
  })
  const account = privateKeyToAccount(`0x${'01'.repeat(32)}`)

  it('is named in a metadata URI by its hash and figures, and a malformed claim is none', async () => {
    const signed = await certify(result, account)
    const uri = `https://agents.example/agent.json${claimOf(signed)}`
    expect(decodeClaim(uri)).toMatchObject({ hash: signed.hash, runs: result.statistics.runs, variants: 1 })
    for (const other of ['', uri.slice(0, -4), `${uri}&`, uri.replace(signed.hash, 'x'), uri.replace('runs=', 'many=')])
      expect(decodeClaim(other)).toBeUndefined()
  })

  it('the hash of a certificate is that of its examination, its owner and its results, as the contract computes it', async () => {
    const [own, other] = [account.address, `0x${'22'.repeat(20)}`] as const
    const signed = await certify(result, account)
    const fields = [{ type: 'bytes32' }, { type: 'address' }, { type: 'bytes32' }] as const
    const hashFor = (owner: Address, results = sha256(stringToHex(JSON.stringify(result)))) =>
      keccak256(encodeAbiParameters(fields, [`0x${'ab'.repeat(32)}`, owner, results]))
    expect(signed).toMatchObject({ owner: own, hash: hashFor(own) })
    const forOther = await certify(result, account, other)
    expect(forOther).toMatchObject({ owner: other, author: own, hash: hashFor(other) })
    expect(await checkCertificate(forOther, result)).toEqual([])
    expect(await checkCertificate({ ...signed, owner: other }, result)).toEqual(['the hash is not of its result'])
  })

  it('a certificate holds for the same result, also with another count of variants', async () => {
    const signed = JSON.parse(JSON.stringify(await certify(result, account)))
    expect(await checkCertificate(signed, result)).toEqual([])
    const variants = { ...result, statistics: statisticsOf([record], [0.1, 0.2]) }
    expect(await checkCertificate(signed, variants)).toEqual([])
  })

  it('a certificate of another result, agent or author does not hold, and the reasons are named', async () => {
    const signed = await certify(result, account)
    const better = { ...record, return: 1 }
    const other = describeResult({
      agent: declareAgent(['node', 'examples/mean-reversion.ts']),
      plan,
      markets: 'ab'.repeat(32),
      records: [better],
      statistics: statisticsOf([better], [0.1]),
    })
    expect(await checkCertificate(signed, other)).toEqual([
      'the agent is another one',
      'the runs had other results',
      'the statistics do not follow from the runs',
    ])
    const forged = { ...signed, result: { ...result, version: '9.9.9' } }
    expect(await checkCertificate(forged, result)).toEqual([
      'the hash is not of its result',
      'the service has another version',
    ])
    expect(await checkCertificate({ ...signed, author: `0x${'11'.repeat(20)}` }, result)).toEqual([
      'the signature is not of its author',
    ])
  })

  it('a certificate does not hold if its deflated Sharpe ratio is better than that of one variant', async () => {
    const runs = runsWith(0.0003, 0.5)
    const ofVariants = (sharpes: number[]) =>
      describeResult({
        agent: declareAgent(['node']),
        plan,
        markets: 'ab'.repeat(32),
        records: runs,
        statistics: statisticsOf(runs, sharpes),
      })
    for (const own of [ofVariants([0.03]), ofVariants([0.03, 0.02])]) {
      expect(await checkCertificate(await certify(own, account), own)).toEqual([])
      const forged = { ...own, statistics: { ...own.statistics, deflatedSharpe: 0.999 } }
      expect(await checkCertificate(await certify(forged, account), own)).toEqual([
        'the statistics do not follow from the runs',
      ])
    }
  })

  it('a certificate that is forged, of other markets or of another version is found before they are played', async () => {
    const signed = await certify(result, account)
    expect(await checkOrigin(signed, result.markets.hash)).toEqual([])
    expect(await checkOrigin(signed, 'cd'.repeat(32))).toEqual(['the plan or the tape of the markets is another one'])
    const forged = { ...signed, result: { ...result, version: '9.9.9' } }
    expect(await checkOrigin(forged, result.markets.hash)).toEqual([
      'the hash is not of its result',
      'the service has another version',
    ])
  })

  it('a file that is no certificate is refused with what is wrong in it', async () => {
    const signed = await certify(result, account)
    expect(parseCertificate('mine.json', JSON.stringify(signed))).toEqual(JSON.parse(JSON.stringify(signed)))
    const endless = { ...result, markets: { ...result.markets, plan: { ...plan, seeds: 1e9 } } }
    for (const [text, message] of [
      ['{', 'mine.json is not a certificate: it is no JSON.'],
      ['[]', 'mine.json is not a certificate: it is missing or not valid.'],
      ['{}', 'mine.json is not a certificate: result is missing or not valid.'],
      [JSON.stringify({ ...signed, owner: '0x1' }), 'mine.json is not a certificate: owner is missing or not valid.'],
      [JSON.stringify({ ...signed, owner: account.address.replace('E', 'e') }), 'owner is missing or not valid.'],
      [JSON.stringify({ ...signed, result: endless }), 'result.markets.plan.seeds is missing or not valid.'],
    ] as const)
      expect(() => parseCertificate('mine.json', text)).toThrow(message)
  })
})

it('a program that neither calls the service nor ends is stopped with a sentence in its output, unless it waits for the market', async () => {
  let [asked, calls] = [0, 0]
  const server = createServer((_, response) => {
    asked++
    response.end(JSON.stringify({ calls, refusals: {}, limits: {} }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-quiet-'))
  const [log, url] = [join(folder, 'log'), `http://127.0.0.1:${(server.address() as AddressInfo).port}`]
  const output = openSync(log, 'w')
  try {
    const program = { name: 'quiet.mjs', command: 'sleep', args: ['1000'], output }
    const agent = { program, agentId: '1', account: devnetAccounts().payer, url }
    let isAwaited = true
    let hasEnded = false
    const ended = runProgram(agent, url, () => isAwaited).finally(() => (hasEnded = true))
    const pass = async (minutes: number) => {
      for (let minute = 0; minute < minutes; minute++) {
        const before = asked
        vi.advanceTimersByTime(60_000)
        while (asked === before && !hasEnded) await setImmediate()
      }
    }
    await pass(14)
    calls++
    await pass(14)
    isAwaited = false
    await pass(20)
    expect(readFileSync(log, 'utf8')).toBe('')
    isAwaited = true
    await pass(15)
    expect(await ended).toBe(1)
    const unknown = { ...agent, program: { ...program, command: 'no-such-program' } }
    await expect(runProgram(unknown, url, () => true)).rejects.toThrow('does not start')
    expect(vi.getTimerCount()).toBe(0)
    expect(readFileSync(log, 'utf8')).toBe(
      'The agent "quiet.mjs" neither called the service nor ended for 15 minutes, so it was stopped. Let it call POST /rehearsal/advance once it has decided, and end when isOver is true.\n',
    )
  } finally {
    vi.useRealTimers()
    closeSync(output)
    server.close()
    rmSync(folder, { recursive: true })
  }
})
