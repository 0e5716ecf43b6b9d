import { execFile, spawn } from 'node:child_process'
import { createHmac, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { createPublicClient, custom, type Hex, numberToHex, type PublicClient } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { devnetAccounts } from '../../devnet/accounts.ts'
import { freePort, startAnvil } from '../../devnet/anvil.ts'
import { bytecodeOf } from '../../devnet/bytecode.ts'
import type { Deployment } from '../../devnet/deployment.ts'
import { type Seeded, seed } from '../../devnet/seed.ts'
import { connect, MULTICALL3 } from '../../devnet/sender.ts'

// Two go-ethereum nodes without dev mode, and the consensus client that tells them which blocks to make and to follow.

type Json = Record<string, unknown>
type Request = <Result>(method: string, ...params: unknown[]) => Promise<Result>

/** A node: `rpc` speaks to its public side, `engine` to the side of its consensus client. */
type GethNode = { url: string; rpc: Request; engine: Request; stop(): Promise<void> }
type Block = { hash: Hex; timestamp: number; payload: Json; executionRequests: unknown[] }

export type GethChain = {
  /** The URLs of the node that makes the blocks, and of its follower. */
  urls: { maker: string; follower: string }
  client: PublicClient
  deployment: Deployment
  /** How many blocks the follower is behind; undefined while it is frozen. */
  setLag(blocks: number | undefined): void
  /** Replaces the newest blocks by a longer branch that the follower makes. */
  reorg(depth: number): Promise<void>
  /** Removes the newest blocks from the maker, as debug_setHead does: its pool gets none of their transactions back. */
  rewind(depth: number): Promise<void>
  stop(): Promise<void>
}

const BLOCK_MS = 1_000
/** How long a node collects transactions for a block. */
const BUILD_MS = 300
const START_TIMEOUT_MS = 30_000
const GAS_LIMIT = 60_000_000
const ETHER = 10n ** 18n
/**
 * What the deployment offers: the priority fee that geth asks for by default, and less than its cap for a whole
 * transaction.
 */
const FEES = { maxFeePerGas: 20_000_000_000n, maxPriorityFeePerGas: 1_000_000n }
const NO_HASH = numberToHex(0, { size: 32 })
const FEE_RECIPIENT = numberToHex(0xfee, { size: 20 })

/** Starts the nodes and deploys everything. `binary` is the path of geth. */
export async function startGethChain(binary: string, chainId: number): Promise<GethChain> {
  const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-geth-'))
  const genesis = join(folder, 'genesis.json')
  writeFileSync(genesis, JSON.stringify(await genesisOf(binary, chainId)))
  const [maker, follower] = await Promise.all([
    startNode(binary, join(folder, 'maker'), genesis),
    startNode(binary, join(folder, 'follower'), genesis),
  ])
  const consensus = await startConsensus(maker, follower)
  const stop = async () => {
    await consensus.stop()
    await Promise.all([maker.stop(), follower.stop()])
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  try {
    const { enode } = await maker.rpc<{ enode: string }>('admin_nodeInfo')
    await follower.rpc('admin_addPeer', enode)
    while ((await follower.rpc('net_peerCount')) === '0x0') await sleep(100)
    const accounts = devnetAccounts()
    const { contracts, vaults, tokens }: Seeded = await seed(seedingClient(maker, chainId), accounts)
    const client = connect(maker.url, chainId)
    const deployment = { chainId, rpcUrl: maker.url, baseUrl: maker.url, contracts, vaults, tokens, accounts }
    return {
      ...consensus,
      urls: { maker: maker.url, follower: follower.url },
      client,
      deployment,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** The genesis of `geth --dev` with ether for the devnet's accounts, and Multicall3 at its standard address. */
async function genesisOf(binary: string, chainId: number) {
  const { stdout } = await promisify(execFile)(binary, ['--dev', 'dumpgenesis'])
  const {
    config: { bogotaTime: _, ...config },
    alloc,
    ...genesis
  } = JSON.parse(stdout)
  const anvil = await startAnvil()
  const { data: code } = await connect(anvil.rpcUrl, anvil.chainId).call({ data: bytecodeOf('Multicall3') })
  await anvil.stop()
  const balance = numberToHex(10_000n * ETHER)
  const funded = Object.values(devnetAccounts()).flat()
  return {
    ...genesis,
    gasLimit: numberToHex(GAS_LIMIT),
    config: { ...config, chainId },
    alloc: {
      ...alloc,
      ...Object.fromEntries(funded.map(({ address }) => [address.toLowerCase(), { balance }])),
      [MULTICALL3.toLowerCase()]: { balance: '0x0', code },
    },
  }
}

async function startNode(binary: string, folder: string, genesis: string): Promise<GethNode> {
  await promisify(execFile)(binary, ['--datadir', folder, 'init', genesis])
  const [port, enginePort, peerPort] = [await freePort(), await freePort(), await freePort()]
  const secret = randomBytes(32)
  const secretFile = join(folder, 'jwt')
  writeFileSync(secretFile, secret.toString('hex'))
  const options = {
    datadir: folder,
    syncmode: 'full',
    'http.port': port,
    'http.api': 'eth,net,web3,debug,txpool,admin',
    'authrpc.port': enginePort,
    'authrpc.jwtsecret': secretFile,
    port: peerPort,
    nat: 'none',
    maxpeers: 4, // of 1, geth keeps none for peers that dial
  }
  const flags = ['--http', '--nodiscover', '--ipcdisable', '--verbosity', '1']
  const given = Object.entries(options).map(([name, value]) => `--${name}=${value}`)
  const child = spawn(binary, [...flags, ...given], { stdio: 'ignore' })
  const kill = () => child.kill()
  process.once('exit', kill)
  const url = `http://127.0.0.1:${port}`
  const rpc = requestsTo(url, () => ({}))
  const isUp = () => rpc('eth_chainId').then(Boolean, () => false)
  for (const until = Date.now() + START_TIMEOUT_MS; !(await isUp()); await sleep(100))
    if (child.exitCode !== null || Date.now() > until) throw new Error(`geth does not start: ${child.exitCode}`)
  return {
    url,
    rpc,
    engine: requestsTo(`http://127.0.0.1:${enginePort}`, () => ({ authorization: `Bearer ${tokenOf(secret)}` })),
    async stop() {
      process.off('exit', kill)
      kill()
      if (child.exitCode === null) await once(child, 'exit')
    },
  }
}

function requestsTo(url: string, headersOf: () => Record<string, string>): Request {
  return async <Result>(method: string, ...params: unknown[]) => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const headers = { 'content-type': 'application/json', ...headersOf() }
    const response = await fetch(url, { method: 'POST', headers, body })
    const { result, error } = (await response.json()) as { result: Result; error?: { message: string } }
    if (error) throw new Error(`${method}: ${error.message}`)
    return result
  }
}

function tokenOf(secret: Buffer): string {
  const encode = (part: Json) => Buffer.from(JSON.stringify(part)).toString('base64url')
  const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ iat: Math.floor(Date.now() / 1000) })}`
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}

/** Makes a block each second on the maker and gives it to the follower. */
async function startConsensus(maker: GethNode, follower: GethNode) {
  const first = await maker.rpc<{ hash: Hex; timestamp: Hex }>('eth_getBlockByNumber', 'latest', false)
  const genesis = { hash: first.hash, timestamp: Number(first.timestamp), payload: {}, executionRequests: [] }
  /** The canonical blocks, oldest first. */
  let chain: [Block, ...Block[]] = [genesis]
  let lag: number | undefined = 0
  const newest = (depth = 0): Block => chain.at(-1 - depth) ?? genesis
  const known = new Map<GethNode, Set<Block>>([maker, follower].map(node => [node, new Set([genesis])]))

  const choose = (node: GethNode, { hash }: Block, attributes: Json | null = null) =>
    node.engine<{ payloadId: string | null }>(
      'engine_forkchoiceUpdatedV3',
      { headBlockHash: hash, safeBlockHash: NO_HASH, finalizedBlockHash: NO_HASH },
      attributes,
    )

  async function make(node: GethNode, parent: Block): Promise<Block> {
    const timestamp = Math.max(parent.timestamp + 1, Math.floor(Date.now() / 1000))
    const { payloadId } = await choose(node, parent, {
      timestamp: numberToHex(timestamp),
      prevRandao: `0x${randomBytes(32).toString('hex')}`,
      suggestedFeeRecipient: FEE_RECIPIENT,
      withdrawals: [],
      parentBeaconBlockRoot: NO_HASH,
    })
    await sleep(BUILD_MS)
    const made = await node.engine<{ executionPayload: Json & { blockHash: Hex }; executionRequests: unknown[] }>(
      'engine_getPayloadV5',
      payloadId,
    )
    const { executionPayload: payload, executionRequests } = made
    const block = { hash: payload.blockHash, timestamp, payload, executionRequests }
    await give(node, [block])
    return block
  }

  async function give(node: GethNode, blocks: readonly Block[]) {
    for (const block of blocks) {
      if (known.get(node)?.has(block)) continue
      await node.engine('engine_newPayloadV4', block.payload, [], NO_HASH, block.executionRequests)
      known.get(node)?.add(block)
    }
  }

  async function follow() {
    if (lag === undefined) return
    await give(follower, lag === 0 ? chain : chain.slice(0, -lag))
    await choose(follower, newest(lag))
  }

  /** Runs one piece of work at a time. */
  let turn: Promise<void> = Promise.resolve()
  const inTurn = (work: () => Promise<void>) => {
    turn = turn.catch(() => {}).then(work)
    return turn
  }
  const makeNext = async () => {
    const block = await make(maker, newest())
    chain.push(block)
    await choose(maker, block)
    await follow()
  }
  const timer = setInterval(() => void inTurn(makeNext).catch(error => console.error(error.message)), BLOCK_MS)

  return {
    setLag(blocks: number | undefined) {
      lag = blocks
    },
    reorg: (depth: number) =>
      inTurn(async () => {
        await give(follower, chain)
        const branch: Block[] = []
        for (let length = 0; length <= depth; length++)
          branch.push(await make(follower, branch.at(-1) ?? newest(depth)))
        chain = [genesis, ...chain.slice(1, chain.length - depth), ...branch]
        await give(maker, branch)
        await choose(maker, newest())
        await follow()
      }),
    rewind: (depth: number) =>
      inTurn(async () => {
        const number = Number(await maker.rpc<Hex>('eth_blockNumber'))
        await maker.rpc('debug_setHead', numberToHex(number - depth))
        for (const lost of chain.splice(chain.length - depth)) known.get(maker)?.delete(lost)
      }),
    async stop() {
      clearInterval(timer)
      await turn.catch(() => {})
    },
  }
}

/**
 * A client with which the devnet's contracts are deployed without anvil's methods: it signs, and blocks come by
 * themselves.
 */
function seedingClient({ rpc, url }: GethNode, chainId: number): PublicClient {
  const keys = new Map(
    Object.values(devnetAccounts())
      .flat()
      .map(({ address, privateKey }) => [address.toLowerCase(), privateKeyToAccount(privateKey)]),
  )
  const { chain } = connect(url, chainId)
  const request = async ({ method, params = [] }: { method: string; params?: unknown[] }) => {
    if (method === 'evm_mine') return sleep(BLOCK_MS / 2)
    if (method === 'anvil_setCode') return null // the genesis has Multicall3
    if (method !== 'eth_sendTransaction') return rpc(method, ...params)
    const [{ from = '', to, data, nonce, gas } = {}] = params as [Record<string, Hex>?]
    const raw = await keys.get(from.toLowerCase())?.signTransaction({
      chainId,
      nonce: Number(nonce),
      ...(to && { to }),
      ...(data && { data }),
      gas: BigInt(gas ?? 0),
      ...FEES,
    })
    return rpc('eth_sendRawTransaction', raw)
  }
  return createPublicClient({ chain, transport: custom({ request }), pollingInterval: 200, cacheTime: 0 })
}
