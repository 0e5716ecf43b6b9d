import { spawn } from 'node:child_process'
import { existsSync, writeSync } from 'node:fs'
import { relative } from 'node:path'
import { privateKeyToAccount } from 'viem/accounts'
import type { Account } from '../devnet/accounts.ts'
import type { Deployment } from '../devnet/index.ts'
import { createClient } from '../packages/client/src/index.ts'
import { createPayer } from '../packages/client/src/pay.ts'
import { type Counted, REFUSED_PATH, type Refused } from './refused.ts'
import type { AgentRecord, Promotion, ReportedOrder, ReportedTrade, Statistics } from './report.ts'

/**
 * A program under test: its name in the report, its command with the arguments, more variables, and the descriptor of
 * the file that gets what it prints.
 */
export type Program = {
  name: string
  command: string
  args: string[]
  env?: Record<string, string>
  output?: number
}
/** Returns the program of a command line, named by the file that it runs, with the arguments after that. */
export function programOf([command, ...args]: readonly [string, ...string[]]): Program {
  const file = args.findIndex(existsSync)
  const shown = file < 0 ? [command, ...args] : [relative('', args[file] ?? ''), ...args.slice(file + 1)]
  return { name: shown.join(' '), command, args }
}

/** A program, its agent on the embedded chain, and the URL at which the service counts what the agent is refused. */
export type AgentUnderTest = { program: Program; agentId: string; account: Account; url: string }

const VAULT = 'genesis'

/** Registers an agent for a program over the ordinary API: the payer of the embedded chain pays the fee. */
export async function registerAgent(
  serviceUrl: string,
  { rpcUrl, chainId, contracts, accounts }: Deployment,
  account: Account,
  program: Program,
  url: string,
): Promise<AgentUnderTest> {
  const client = createClient({ baseUrl: serviceUrl, rpcUrl, account: privateKeyToAccount(account.privateKey) })
  const { registrationFee } = await client.getRegistrationQuote()
  const payer = createPayer({
    account: privateKeyToAccount(accounts.payer.privateKey),
    chainId,
    asset: contracts.USDC,
    maxAmount: BigInt(registrationFee.amount),
    // The chain's clock is ahead of this machine's.
    maxValiditySeconds: Number.MAX_SAFE_INTEGER,
  })
  const registration = {
    vault: VAULT,
    name: program.name.slice(0, 32),
    metadataURI: 'https://agents.example/agent.json',
  }
  const { agentId } = await client.register({ ...registration, payer })
  return { program, agentId, account, url }
}

const MINUTE_MS = 60_000
/** How many minutes without a call end a program for which the market waits. A model may take several to answer. */
const MAX_QUIET_MINUTES = 15

/**
 * Runs a program until it ends, at the latest with this process, and returns its exit code. What it prints goes to its
 * output or to stderr, because stdout has the report. One that is quiet for long while `isAwaited` is stopped.
 */
export function runProgram(
  { program, agentId, account, url }: AgentUnderTest,
  rpcUrl: string,
  isAwaited: () => boolean,
): Promise<number> {
  const { output = 2 } = program
  const child = spawn(program.command, program.args, {
    stdio: ['ignore', output, output],
    env: {
      ...process.env,
      ...program.env,
      BASE: url,
      ATS_URL: url,
      RPC_URL: rpcUrl,
      ATS_AGENT: agentId,
      AGENT_KEY: account.privateKey,
    },
  })
  const kill = () => child.kill()
  process.once('exit', kill)
  let [quietMinutes, before] = [0, 0]
  const watch = setInterval(async () => {
    const { calls } = await readCounted(url).catch(() => ({ calls: before }))
    quietMinutes = isAwaited() && calls === before ? quietMinutes + 1 : 0
    before = calls
    if (quietMinutes !== MAX_QUIET_MINUTES) return
    const problem = `The agent "${program.name}" neither called the service nor ended for ${MAX_QUIET_MINUTES} minutes, so it was stopped.`
    writeSync(
      output,
      `${problem} Let it call POST /rehearsal/advance once it has decided, and end when isOver is true.\n`,
    )
    child.kill('SIGKILL')
  }, MINUTE_MS)
  return new Promise<number>((resolve, reject) =>
    child
      .once('error', cause =>
        reject(
          new Error(`The agent "${program.name}" does not start: ${cause.message}. Check its command.`, { cause }),
        ),
      )
      .once('exit', code => resolve(code ?? 1)),
  ).finally(() => {
    clearInterval(watch)
    process.off('exit', kill)
  })
}

/**
 * Reads what the service says of an agent after its last trade. Its times are the tape's: `shift` seconds before the
 * chain's.
 */
export async function recordOf(
  serviceUrl: string,
  { program, agentId, url }: AgentUnderTest,
  { exitCode, shift }: { exitCode: number; shift: number },
): Promise<AgentRecord> {
  const client = createClient({ baseUrl: serviceUrl })
  const [{ allocation, accountRiskBounds, promotionReadiness }, statistics, trades, orders, refused] =
    await Promise.all([
      client.getRiskState({ agentId }),
      client.getAgentStats({ agentId, period: 'all' }),
      readTrades(client, agentId, shift),
      readOrders(client, agentId, shift),
      readRefused(url),
    ])
  const { asOf: _, lagBlocks: __, agentId: ___, ...figures } = statistics
  return {
    name: program.name,
    allocationUsdc: BigInt(allocation.cap),
    maxDrawdownBps: Number(accountRiskBounds.maxDrawdownBps),
    trades,
    orders,
    statistics: onTheTapesClock(figures as Statistics, shift),
    promotion: promotionReadiness as Promotion,
    ...refused,
    exitCode,
  }
}

async function readCounted(url: string): Promise<Counted> {
  const response = await fetch(url + REFUSED_PATH)
  return (await response.json()) as Counted
}

/** Reads what the service has refused at an agent's port, in the order of the names. */
async function readRefused(url: string): Promise<Refused> {
  const { refusals, limits } = await readCounted(url)
  return { refusals: sorted(refusals), limits: sorted(limits) }
}

const sorted = (counts: Record<string, number>): Record<string, number> =>
  Object.fromEntries(Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1)))

/** Returns statistics whose times are `shift` seconds earlier. */
function onTheTapesClock(statistics: Statistics, shift: number): Statistics {
  const earlier = (time: string) => `${Number(time) - shift}`
  const { maxDrawdown, pnlByDay } = statistics
  return {
    ...statistics,
    maxDrawdown: maxDrawdown && { ...maxDrawdown, from: earlier(maxDrawdown.from), to: earlier(maxDrawdown.to) },
    pnlByDay: pnlByDay.map(each => ({ ...each, day: earlier(each.day) })),
  }
}

/** Returns every order of an agent, oldest first. */
async function readOrders(
  client: ReturnType<typeof createClient>,
  agentId: string,
  shift: number,
): Promise<ReportedOrder[]> {
  const orders: ReportedOrder[] = []
  const earlier = (time: string | null) => (time === null ? null : `${Number(time) - shift}`)
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await client.listOrders({ agentId, limit: '100', ...(cursor && { cursor }) } as { agentId: string })
    orders.push(
      ...page.orders.map(order => ({
        placedAt: `${Number(order.placedAt) - shift}`,
        endedAt: earlier(order.endedAt),
        side: order.side,
        symbol: order.symbol,
        usdcAmount: order.usdcAmount,
        exitBps: order.exitBps,
        condition: order.condition,
        price: order.price,
        trailBps: order.trailBps,
        state: order.state,
        endReason: order.endReason,
        partsDone: order.partsDone,
        parts: order.parts,
        waitsFor: order.waitsFor?.error ?? null,
        note: order.note ?? null,
      })),
    )
    cursor = page.nextCursor
  }
  return orders.reverse()
}

/**
 * Returns every trade of an agent, oldest first and those of one time by position, without the ids that differ between
 * two runs.
 */
async function readTrades(
  client: ReturnType<typeof createClient>,
  agentId: string,
  shift: number,
): Promise<ReportedTrade[]> {
  const trades: ReportedTrade[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await client.getTradeHistory({ agentId, limit: '100', ...(cursor && { cursor }) } as {
      agentId: string
    })
    trades.push(
      ...page.trades.map(trade => ({
        timestamp: `${Number(trade.timestamp) - shift}`,
        type: trade.type,
        source: trade.source,
        positionId: trade.positionId,
        symbol: trade.symbol,
        usdcAmount: trade.usdcAmount,
        tokenAmount: trade.tokenAmount,
        priceUsdc: trade.priceUsdc,
        realizedPnlUsdc: trade.realizedPnlUsdc,
        triggerType: trade.triggerType,
        triggerBps: trade.triggerBps,
        note: trade.note,
      })),
    )
    cursor = page.nextCursor
  }
  return trades
    .reverse()
    .sort((a, b) => Number(a.timestamp) - Number(b.timestamp) || Number(a.positionId) - Number(b.positionId))
}
