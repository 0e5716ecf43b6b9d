import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { numberToHex } from 'viem'

// The chain on which the market's own is built: a node with one empty block. Anvil computes the root of its whole state
// for each block, but not on top of another chain, whose state it cannot know. That root takes most of a block's time.

type Call = { id: number; method: string }

const ZERO = `0x${'0'.repeat(64)}`
const EMPTY_TRIE = '0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421'

const blockAt = (timestamp: number) => ({
  number: '0x0',
  hash: `0x${'1'.repeat(64)}`,
  parentHash: ZERO,
  nonce: '0x0000000000000000',
  sha3Uncles: '0x1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347',
  logsBloom: `0x${'0'.repeat(512)}`,
  transactionsRoot: EMPTY_TRIE,
  stateRoot: EMPTY_TRIE,
  receiptsRoot: EMPTY_TRIE,
  withdrawalsRoot: EMPTY_TRIE,
  parentBeaconBlockRoot: ZERO,
  requestsHash: '0xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  mixHash: ZERO,
  miner: `0x${'0'.repeat(40)}`,
  difficulty: '0x0',
  totalDifficulty: '0x0',
  extraData: '0x',
  size: '0x200',
  gasLimit: '0x3938700',
  gasUsed: '0x0',
  baseFeePerGas: '0x3b9aca00',
  blobGasUsed: '0x0',
  excessBlobGas: '0x0',
  timestamp: numberToHex(timestamp),
  transactions: [],
  uncles: [],
  withdrawals: [],
})

/** Serves a chain of one block, at a time in Unix seconds. */
export async function startEmptyChain(
  chainId: number,
  timestamp: number,
): Promise<{ url: string; stop(): Promise<void> }> {
  const block = blockAt(timestamp)
  const results: Record<string, unknown> = {
    eth_chainId: numberToHex(chainId),
    net_version: `${chainId}`,
    eth_blockNumber: block.number,
    eth_getBlockByNumber: block,
    eth_getBlockByHash: block,
    eth_gasPrice: block.baseFeePerGas,
    eth_getBalance: '0x0',
    eth_getTransactionCount: '0x0',
    eth_getCode: '0x',
    eth_getStorageAt: ZERO,
    eth_getAccountInfo: { balance: '0x0', nonce: '0x0', code: '0x' },
    eth_getTransactionReceipt: null,
    eth_getTransactionByHash: null,
    eth_getBlockReceipts: [],
    eth_getLogs: [],
  }
  const reply = ({ id, method }: Call) =>
    method in results
      ? { jsonrpc: '2.0', id, result: results[method] }
      : { jsonrpc: '2.0', id, error: { code: -32601, message: `An empty chain has no ${method}.` } }
  const server = createServer(async (request, response) => {
    const calls = (await json(request)) as Call | Call[]
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify(Array.isArray(calls) ? calls.map(reply) : reply(calls)))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
