import { setTimeout as sleep } from 'node:timers/promises'
import { TRADE_TOPICS } from '@agent-trading-service/protocol/trade-events'
import { createParser } from 'eventsource-parser'
import type { Hex, PublicClient } from 'viem'
import { type Deployment, startDevnet } from '../../devnet/index.ts'
import { asRealChain, unlimitedGas, workerVars } from '../../devnet/worker-vars.ts'
import type { StartService } from '../faults/service.ts'
import { randomOf } from '../support/seeded-random.ts'
import { type Attempt, liveHonestly } from './honest-agent.ts'
import { type ProviderName, type ProviderProfile, profiles } from './profiles.ts'
import { startProviderProxy } from './provider-proxy.ts'

/** What honest agents experienced behind a provider, compared with the chain. */
export type ProviderReport = {
  attempts: number
  succeeded: number
  intents: number
  /** Every refusal of an honest operation, by operation and code. */
  refusals: Record<string, number>
  falsehoods: string[]
  /** Trades on the chain that the index or the event stream lacks, and trades that they report twice. */
  missing: string[]
  doubled: string[]
  /** What the service asked of the provider while the agents traded. */
  traffic: ProviderTraffic
}

/** Calls by method, and bytes sent, in a number of seconds and of blocks. */
export type ProviderTraffic = { calls: Record<string, number>; bytes: number; seconds: number; blocks: number }

export type ProviderRig = Awaited<ReturnType<typeof startProviderRig>>

const CHAIN_ID = 421_614
const SPIKE_EVERY_MS = 4_000
const INDEX_TIMEOUT_MS = 60_000
const POLL_MS = 100

/** Starts a chain at the pace of the profile, a provider in front of it and the service. */
export async function startProviderRig(start: StartService, { name, seed }: { name: ProviderName; seed: number }) {
  let profile: ProviderProfile = profiles[name]
  const { blockMs, priceSource } = profile
  const devnet = await startDevnet({ chainId: CHAIN_ID, blockMs, emptyBlockMs: blockMs, priceSource })
  devnet.marketMaker.pause()
  const { client, deployment } = devnet
  const proxy = await startProviderProxy(devnet.rpcUrl, { profile, seed })
  const service = await start({
    ...workerVars(deployment),
    ...unlimitedGas,
    RPC_URL: proxy.url,
    ...asRealChain,
    X402_ENABLED: 'false',
  })
  const began = Date.now()
  const spikes = setInterval(() => proxy.setSpike(Math.floor((Date.now() - began) / SPIKE_EVERY_MS) % 2 === 1), 500)

  const makeQuiet = async (isQuiet: boolean) => {
    await devnet.setMining(!isQuiet)
    await client.request<{ Method: 'evm_setAutomine'; Parameters: [boolean]; ReturnType: null }>({
      method: 'evm_setAutomine',
      params: [isQuiet],
    })
  }
  if (profile.isQuiet) await makeQuiet(true)

  /** Counts what the service asks of the provider during some work. */
  async function during(work: () => Promise<unknown>): Promise<ProviderTraffic> {
    const newestBlock = async () => Number(await client.getBlockNumber({ cacheTime: 0 }))
    const before = {
      calls: new Map(proxy.counts.calls),
      bytes: proxy.counts.bytes,
      at: Date.now(),
      block: await newestBlock(),
    }
    await work()
    const calls = [...proxy.counts.calls].map(([method, count]) => [method, count - (before.calls.get(method) ?? 0)])
    return {
      calls: Object.fromEntries(calls.filter(([, count]) => count !== 0)),
      bytes: proxy.counts.bytes - before.bytes,
      seconds: (Date.now() - before.at) / 1000,
      blocks: (await newestBlock()) - before.block,
    }
  }

  return {
    name,
    url: service.url,
    logs: service.logs,
    limits: proxy.counts.limits,
    during,
    trade: (options: TradeOptions) => tradeHonestly({ url: service.url, client, deployment }, { ...options, during }),
    /** Opens one position that stays open. */
    hold: () =>
      liveHonestly(service.url, {
        key: keyOf(seed, 1_000),
        vault: deployment.vaults.genesis as string,
        rounds: 1,
        random: randomOf('holder', seed),
        name: 'holder',
        holds: true,
      }),
    /** Opens an event stream. Returns what closes it. */
    async stream(): Promise<() => void> {
      const { opened, close } = follow(`${service.url}/events`)
      await opened
      return close
    },
    /** Fires the cron trigger of a minute of the hour, and waits for its end. */
    cron: (minute: number) => fetch(`${service.url}/faults/cron?minute=${minute}`).then(response => response.text()),
    /** Puts the service behind another provider. */
    async become(next: ProviderName): Promise<void> {
      const wasQuiet = profile.isQuiet
      profile = profiles[next]
      proxy.become(profile)
      await devnet.setBlockTime(profile.blockMs)
      if (profile.isQuiet !== wasQuiet) await makeQuiet(profile.isQuiet)
    },
    async stop(): Promise<void> {
      clearInterval(spikes)
      await service.stop()
      await proxy.stop()
      await devnet.stop()
    },
  }
}

/** `settleMs`: see `liveHonestly`. */
type TradeOptions = { seed: number; rounds: number; agents: number; settleMs?: number }

/**
 * Lives the lives of honest agents, and compares everything the service told them, its index and its event stream with
 * the chain.
 */
export async function tradeHonestly(
  { url, client, deployment }: { url: string; client: PublicClient; deployment: Deployment },
  {
    seed,
    rounds,
    agents,
    settleMs = 0,
    during,
  }: TradeOptions & { during: (work: () => Promise<unknown>) => Promise<ProviderTraffic> },
): Promise<ProviderReport> {
  const fromBlock = (await client.getBlockNumber({ cacheTime: 0 })) + 1n
  const stream = follow(`${url}/events`)
  try {
    await stream.opened
    let lives: Attempt[][] = []
    const traffic = await during(async () => {
      lives = await Promise.all(
        Array.from({ length: agents }, (_, index) =>
          liveHonestly(url, {
            key: keyOf(seed, index),
            vault: deployment.vaults.genesis as string,
            rounds,
            random: randomOf('honest', seed, index),
            name: `honest ${index}`,
            settleMs,
          }),
        ),
      )
    })
    const attempts = lives.flat()
    const trades = await tradesSince(client, deployment.contracts.TradeRouter as Hex, fromBlock)
    const found = await compare(url, { trades, stream })
    // If no outcome is unknown, every transaction of the chain is one that an agent was told of.
    const told = new Set(attempts.map(({ transactionHash }) => transactionHash))
    if (attempts.every(({ status }) => status > 0 && status < 500))
      found.doubled.push(...trades.filter(hash => !told.has(hash)).map(hash => `no agent was told of ${hash}`))
    return {
      attempts: attempts.length,
      succeeded: attempts.filter(isRight).length,
      intents: attempts.filter(({ status, operation }) => status === 201 && !operation.endsWith('quote')).length,
      refusals: tally(
        attempts
          .filter(({ status }) => status !== 200 && status !== 201)
          .map(({ operation, status, code }) => `${operation}: ${code ?? status}`),
      ),
      falsehoods: attempts.flatMap(({ operation, falsehood }) => (falsehood ? [`${operation}: ${falsehood}`] : [])),
      ...found,
      traffic,
    }
  } finally {
    stream.close()
  }
}

/** Returns the transactions with trades that the chain has from a block on, each once. */
async function tradesSince(client: PublicClient, router: Hex, fromBlock: bigint): Promise<Hex[]> {
  const logs = await client.getLogs({ address: router, fromBlock, toBlock: 'latest' })
  const topics = new Set<string>(TRADE_TOPICS)
  return [...new Set(logs.filter(({ topics: [topic] }) => topic && topics.has(topic)).map(log => log.transactionHash))]
}

const isRight = ({ status, falsehood }: Attempt) => (status === 200 || status === 201) && falsehood === undefined
const tally = (names: readonly string[]) =>
  Object.fromEntries([...Map.groupBy(names, name => name)].map(([name, all]) => [name, all.length]))
const keyOf = (seed: number, index: number): Hex =>
  `0x${(1_000_003n * BigInt(seed + 1) + BigInt(index + 1)).toString(16).padStart(64, '0')}`

/** Compares the chain's trades with the index's and the stream's, once both had time to see them. */
async function compare(url: string, { trades, stream }: { trades: Hex[]; stream: ReturnType<typeof follow> }) {
  const streamed = () => stream.trades.map(({ transactionHash }) => transactionHash)
  for (const until = Date.now() + INDEX_TIMEOUT_MS; Date.now() < until; await sleep(POLL_MS)) {
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
      if (!response.ok) throw new Error(`trades of agent ${agentId}: ${response.status} ${await response.text()}`)
      const page = (await response.json()) as { trades: { transactionHash: string }[]; nextCursor?: string | null }
      hashes.push(...page.trades.map(({ transactionHash }) => transactionHash))
      cursor = page.nextCursor ?? undefined
    } while (cursor !== undefined)
  }
}

/** Opens an event stream, as soon as the service has read the chain that far. */
async function openStream(url: string, signal: AbortSignal): Promise<Response> {
  for (;;) {
    const response = await fetch(url, { signal })
    if (response.ok) return response
    await response.text()
    await sleep(POLL_MS)
  }
}

/** Follows an event stream to the end of the run. */
function follow(url: string) {
  const trades: { id: string; transactionHash: string }[] = []
  const aborter = new AbortController()
  const opened = openStream(url, aborter.signal)
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
