import { setTimeout as sleep } from 'node:timers/promises'
import { TRADE_TOPICS } from '@agent-trading-service/protocol/trade-events'
import { createParser } from 'eventsource-parser'
import type { Hex, PublicClient } from 'viem'
import { startDevnet } from '../../devnet/index.ts'
import { unlimitedGas, workerVars } from '../../devnet/worker-vars.ts'
import type { StartService } from '../faults/service.ts'
import { randomOf } from '../support/seeded-random.ts'
import { type Attempt, liveHonestly } from './honest-agent.ts'
import { type ProviderName, type ProviderProfile, profiles } from './profiles.ts'
import { startProviderProxy } from './provider-proxy.ts'

export type ProviderReport = {
  profile: ProviderName
  attempts: number
  succeeded: number
  intents: number
  /** Every refusal of an honest operation, by operation and code. */
  refusals: Record<string, number>
  falsehoods: string[]
  /** Trades on the chain that the index or the event stream lacks, and trades that they report twice. */
  missing: string[]
  doubled: string[]
  callsPerIntent: number
  bytesPerIntent: number
  callsPerIdleHour: number
  /** Calls by method while the agents traded. */
  calls: Record<string, number>
  /** How often the provider refused something. */
  limits: Record<string, number>
  seconds: number
  /** What the service printed. */
  logs: string
}

const CHAIN_ID = 421_614
const BLOCK_MS = 250
const AGENTS = 4
const IDLE_MS = 20_000
const SPIKE_EVERY_MS = 4_000
const INDEX_TIMEOUT_MS = 60_000

/** Runs honest agents through a service behind a provider and compares everything it told with the chain. */
export async function runProvider(
  start: StartService,
  { name, seed, rounds }: { name: ProviderName; seed: number; rounds: number },
): Promise<ProviderReport> {
  const profile: ProviderProfile = profiles[name]
  const began = Date.now()
  const devnet = await startDevnet({ chainId: CHAIN_ID, mineEveryMs: BLOCK_MS })
  devnet.marketMaker.pause()
  const proxy = await startProviderProxy(devnet.rpcUrl, { profile, seed })
  const { client, deployment } = devnet
  if (profile.isQuiet) {
    await devnet.setMining(false)
    await client.request<{ Method: 'evm_setAutomine'; Parameters: [boolean]; ReturnType: null }>({
      method: 'evm_setAutomine',
      params: [true],
    })
  }
  const fromBlock = await client.getBlockNumber({ cacheTime: 0 })
  const service = await start({
    ...workerVars(deployment),
    ...unlimitedGas,
    RPC_URL: proxy.url,
    DEVELOPMENT_CHAIN: 'false',
    X402_ENABLED: 'false',
  })
  const stream = follow(`${service.url}/events`)
  const spikes = setInterval(() => proxy.setSpike(Math.floor((Date.now() - began) / SPIKE_EVERY_MS) % 2 === 1), 500)
  try {
    await stream.opened
    const before = { calls: sum(proxy.counts.calls), bytes: proxy.counts.bytes }
    const lives = await Promise.all(
      Array.from({ length: AGENTS }, (_, index) =>
        liveHonestly(service.url, {
          key: keyOf(seed, index),
          vault: deployment.vaults.genesis as string,
          rounds,
          random: randomOf('honest', seed, index),
          name: `honest ${index}`,
        }),
      ),
    )
    const attempts = lives.flat()
    const intents = attempts.filter(({ status, operation }) => status === 201 && !operation.endsWith('quote')).length
    const calls = Object.fromEntries(proxy.counts.calls)
    const used = { calls: sum(proxy.counts.calls) - before.calls, bytes: proxy.counts.bytes - before.bytes }
    const trades = await tradesOf(client, deployment.contracts.TradeRouter as Hex, fromBlock)
    const found = await compare(service.url, { trades, stream })
    const idleFrom = sum(proxy.counts.calls)
    await sleep(IDLE_MS)
    const idleCalls = sum(proxy.counts.calls) - idleFrom
    return {
      profile: name,
      attempts: attempts.length,
      succeeded: attempts.filter(isRight).length,
      intents,
      refusals: tally(
        attempts
          .filter(({ status }) => status !== 200 && status !== 201)
          .map(({ operation, status, code }) => `${operation}: ${code ?? status}`),
      ),
      falsehoods: attempts.flatMap(({ operation, falsehood }) => (falsehood ? [`${operation}: ${falsehood}`] : [])),
      ...found,
      callsPerIntent: used.calls / Math.max(1, intents),
      bytesPerIntent: used.bytes / Math.max(1, intents),
      callsPerIdleHour: (idleCalls * 3_600_000) / IDLE_MS,
      calls,
      limits: Object.fromEntries(proxy.counts.limits),
      seconds: (Date.now() - began) / 1000,
      logs: service.logs(),
    }
  } finally {
    clearInterval(spikes)
    stream.close()
    await service.stop()
    await proxy.stop()
    await devnet.stop()
  }
}

const isRight = ({ status, falsehood }: Attempt) => (status === 200 || status === 201) && falsehood === undefined
const sum = (counts: ReadonlyMap<string, number>) => [...counts.values()].reduce((total, count) => total + count, 0)
const tally = (names: readonly string[]) =>
  Object.fromEntries([...Map.groupBy(names, name => name)].map(([name, all]) => [name, all.length]))
const keyOf = (seed: number, index: number): Hex =>
  `0x${(1_000_003n * BigInt(seed + 1) + BigInt(index + 1)).toString(16).padStart(64, '0')}`

/** Returns the transactions with trades that the chain has above a block, each once. */
async function tradesOf(client: PublicClient, router: Hex, fromBlock: bigint): Promise<Hex[]> {
  const logs = await client.getLogs({ address: router, fromBlock, toBlock: 'latest' })
  const topics = new Set<string>(TRADE_TOPICS)
  return [...new Set(logs.filter(({ topics: [topic] }) => topic && topics.has(topic)).map(log => log.transactionHash))]
}

/** Compares the chain's trades with the index's and the stream's, once both had time to see them. */
async function compare(url: string, { trades, stream }: { trades: Hex[]; stream: ReturnType<typeof follow> }) {
  const streamed = () => stream.trades.map(({ transactionHash }) => transactionHash)
  for (const until = Date.now() + INDEX_TIMEOUT_MS; Date.now() < until; await sleep(250)) {
    const seen = new Set(streamed())
    if (trades.every(hash => seen.has(hash))) break
  }
  const seen = streamed()
  const listed = await listTrades(url)
  const lacks = (where: string, hashes: readonly string[]) =>
    trades.filter(hash => !hashes.includes(hash)).map(hash => `${where}: ${hash}`)
  const ids = stream.trades.map(({ id }) => id)
  return {
    missing: [...lacks('stream', seen), ...lacks('index', listed)],
    doubled: ids.filter((id, index) => ids.indexOf(id) !== index),
  }
}

/** Returns the transaction hashes of all trades that the service lists. */
async function listTrades(url: string): Promise<string[]> {
  const hashes: string[] = []
  for (let agentId = 1; ; agentId++) {
    let cursor: string | undefined
    do {
      const query = new URLSearchParams({ limit: '100', ...(cursor !== undefined && { cursor }) })
      const response = await fetch(`${url}/agents/${agentId}/trades?${query}`)
      if (response.status === 404) return hashes
      const page = (await response.json()) as { trades: { transactionHash: string }[]; nextCursor?: string | null }
      hashes.push(...page.trades.map(({ transactionHash }) => transactionHash))
      cursor = page.nextCursor ?? undefined
    } while (cursor !== undefined)
  }
}

/** Follows an event stream to the end of the run. */
function follow(url: string) {
  const trades: { id: string; transactionHash: string }[] = []
  const aborter = new AbortController()
  const opened = fetch(url, { signal: aborter.signal })
  const parser = createParser({
    onEvent: ({ id = '', event, data }) => {
      if (event !== 'trade' && event !== 'exit' && event !== 'ladder') return
      trades.push({ id, transactionHash: (JSON.parse(data) as { transactionHash: string }).transactionHash })
    },
  })
  void opened
    .then(async ({ body }) => {
      if (body === null) return
      for await (const text of body.pipeThrough(new TextDecoderStream())) parser.feed(text)
    })
    .catch(() => {}) // closed at the end
  return { trades, opened, close: () => aborter.abort() }
}
