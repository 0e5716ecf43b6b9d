import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'

// Hardhat's EDR behind the command line, the methods and the units of anvil, as far as this repository uses them: a
// second implementation of a node for the tests. `npm run test:edr` starts it in anvil's place.

type Provider = { request(call: { method: string; params?: unknown[] }): Promise<unknown> }
type Call = { id: unknown; method: string; params?: unknown[] }
type ProviderError = { code?: number; message?: string; data?: unknown }

const { values } = parseArgs({
  allowPositionals: true,
  options: {
    host: { type: 'string', default: '127.0.0.1' },
    port: { type: 'string', default: '8545' },
    'chain-id': { type: 'string', default: '31337' },
    accounts: { type: 'string', default: '10' },
    balance: { type: 'string', default: '10000' },
    'gas-limit': { type: 'string', default: '60000000' },
    mnemonic: { type: 'string', default: '' },
    timestamp: { type: 'string' },
    order: { type: 'string', default: 'priority' },
    'no-mining': { type: 'boolean', default: false },
    silent: { type: 'boolean', default: false },
    'prune-history': { type: 'string' },
  },
})

const SYNC_TIMEOUT_MS = 4_000
const SYNC_POLL_MS = 10
const FINALIZED_DEPTH = 64
const WEI_PER_ETHER = 10n ** 18n

const provider = await connect()

async function connect(): Promise<Provider> {
  const hardhat = pathToFileURL(`${process.env.EDR_HARDHAT}/dist/src/hre.js`).href
  const { createHardhatRuntimeEnvironment } = await import(hardhat)
  const hre = await createHardhatRuntimeEnvironment({
    networks: {
      chain: {
        type: 'edr-simulated',
        chainType: 'l1',
        chainId: Number(values['chain-id']),
        hardfork: 'prague',
        blockGasLimit: Number(values['gas-limit']),
        initialBaseFeePerGas: 1_000_000_000,
        // With several blocks a second, the clock would run ahead otherwise.
        allowBlocksWithSameTimestamp: true,
        throwOnTransactionFailures: false,
        throwOnCallFailures: true,
        mining: { auto: !values['no-mining'], interval: 0, mempool: { order: values.order } },
        accounts: {
          mnemonic: values.mnemonic,
          count: Number(values.accounts),
          accountsBalance: `${BigInt(values.balance) * WEI_PER_ETHER}`,
        },
        ...(values.timestamp !== undefined && { initialDate: new Date(Number(values.timestamp) * 1000).toISOString() }),
      },
    },
  })
  return (await hre.network.connect('chain')).provider
}

const request = (method: string, params: unknown[] = []) => provider.request({ method, params })

/** Anvil's methods that Hardhat has under another name or with other units. */
const ADAPTED: Record<string, (params: unknown[]) => Promise<unknown>> = {
  evm_mine: mine,
  // hardhat_mine puts blocks between the first and the last one that name no parent, which is no chain to follow.
  async anvil_mine([count = 1, seconds]) {
    for (let mined = 0n; mined < BigInt(count as string | number); mined++) {
      if (mined > 0n && seconds !== undefined) await request('evm_increaseTime', [quantity(seconds)])
      await mine()
    }
    return null
  },
  anvil_setCode: params => request('hardhat_setCode', params),
  anvil_setBalance: ([account, balance]) => request('hardhat_setBalance', [account, quantity(balance)]),
  anvil_setStorageAt: ([account, slot, value]) =>
    request('hardhat_setStorageAt', [account, quantity(slot), `0x${`${value}`.slice(2).padStart(64, '0')}`]),
  anvil_impersonateAccount: params => request('hardhat_impersonateAccount', params),
  anvil_stopImpersonatingAccount: params => request('hardhat_stopImpersonatingAccount', params),
  anvil_setNextBlockBaseFeePerGas: ([fee]) => request('hardhat_setNextBlockBaseFeePerGas', [quantity(fee)]),
  anvil_dropTransaction: params => request('hardhat_dropTransaction', params),
  anvil_reorg: ([depth]) => reorg(Number(depth)),
  anvil_dropAllTransactions: dropPending,
  evm_revert: ([snapshot]) => revertTo(snapshot as string),
  evm_setBlockGasLimit: ([limit]) => request('evm_setBlockGasLimit', [quantity(limit)]),
  evm_increaseTime: async ([seconds]) => Number(await request('evm_increaseTime', [quantity(seconds)])),
  async eth_sendRawTransactionSync([raw]) {
    const hash = await request('eth_sendRawTransaction', [raw])
    for (const until = Date.now() + SYNC_TIMEOUT_MS; Date.now() < until; await sleep(SYNC_POLL_MS)) {
      const receipt = await request('eth_getTransactionReceipt', [hash])
      if (receipt) return receipt
    }
    throw { code: 4, message: 'The transaction was added to the mempool but was not mined in time.', data: hash }
  },
  // anvil's finalized block is two epochs old, and Hardhat's the newest one.
  async eth_getBlockByNumber([block, isFull]) {
    const number = block === 'finalized' ? quantity(Math.max(0, (await newestBlock()) - FINALIZED_DEPTH)) : block
    return request('eth_getBlockByNumber', [number, isFull])
  },
  async eth_getBlockReceipts([block]) {
    const found = (await request('eth_getBlockByNumber', [block, false])) as { transactions: string[] } | null
    return found && Promise.all(found.transactions.map(hash => request('eth_getTransactionReceipt', [hash])))
  },
}

/** Snapshots of the chain by the number of its newest block, which a reorg restores. */
const snapshots = new Map<number, string>()
const newestBlock = async () => Number(await request('eth_blockNumber'))
await keepSnapshot()

async function keepSnapshot(): Promise<void> {
  snapshots.set(await newestBlock(), (await request('evm_snapshot')) as string)
}

async function revertTo(snapshot: string): Promise<unknown> {
  const isReverted = await request('evm_revert', [snapshot])
  for (const [number, kept] of snapshots) if (BigInt(kept) >= BigInt(snapshot)) snapshots.delete(number)
  await keepSnapshot()
  return isReverted
}

async function dropPending(): Promise<null> {
  for (const { hash } of (await request('eth_pendingTransactions')) as { hash: string }[])
    await request('hardhat_dropTransaction', [hash])
  return null
}

let mining: Promise<unknown> = Promise.resolve()

/** Mines a block and keeps its snapshot, before any other block. */
function mine(params: unknown[] = []): Promise<unknown> {
  const mined = mining.then(async () => {
    const result = await request('evm_mine', params)
    await keepSnapshot()
    return result
  })
  mining = mined.catch(() => {})
  return mined
}

/** Replaces the newest blocks by as many others, without their transactions. */
async function reorg(depth: number): Promise<null> {
  const ancestor = (await newestBlock()) - depth
  const snapshot = snapshots.get(ancestor)
  if (snapshot === undefined) throw { code: -32602, message: `There is no snapshot of block ${ancestor}.` }
  await revertTo(snapshot)
  await dropPending()
  await request('hardhat_setPrevRandao', [`0x${randomBytes(32).toString('hex')}`]) // no block equals the one it replaces
  for (let mined = 0; mined < depth; mined++) await mine()
  return null
}

/** Hardhat takes quantities only as hexadecimal digits without leading zeros. */
const quantity = (value: unknown) =>
  value === undefined ? value : `0x${BigInt(value as string | number).toString(16)}`

async function answer({ id, method, params = [] }: Call): Promise<unknown> {
  try {
    const result = await (ADAPTED[method]?.(params) ?? request(method, params))
    return { jsonrpc: '2.0', id, result: result ?? null }
  } catch (error) {
    const { code = -32603, message = '', data } = error as ProviderError
    const revertData = typeof data === 'object' && data !== null && 'data' in data ? data.data : data
    return { jsonrpc: '2.0', id, error: { code, message, ...(typeof revertData === 'string' && { data: revertData }) } }
  }
}

const CORS = { 'access-control-allow-origin': '*', 'access-control-allow-headers': '*' }

createServer(async (incoming, response) => {
  if (incoming.method === 'OPTIONS') return void response.writeHead(204, CORS).end()
  const body = JSON.parse(await text(incoming)) as Call | Call[]
  const replies = Array.isArray(body) ? await Promise.all(body.map(answer)) : await answer(body)
  response.writeHead(200, { ...CORS, 'content-type': 'application/json' }).end(JSON.stringify(replies))
})
  .on('upgrade', (_, socket) => socket.destroy()) // it has no subscriptions
  .listen(Number(values.port), values.host)
