import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { numberToHex } from 'viem'
import { afterEach, expect, test } from 'vitest'
import type { Chain } from '../../src/chain/configured-chain.ts'
import { untilReached } from '../../src/chain/read-current.ts'
import { createTransport } from '../../src/rpc/transport.ts'

const HEAD = 5_000
const NOW = Math.floor(Date.now() / 1_000)
const servers: Server[] = []
afterEach(() => Promise.all(servers.splice(0).map(server => new Promise(resolve => server.close(resolve)))))

/** Returns a chain whose node shows `HEAD` as the newest block four times, and then a block that is `ahead` of it. */
async function chainWith(secondsPerBlock: number, ahead: number): Promise<Chain> {
  let newestRead = 0
  const blockAt = (number: number) => ({
    number: numberToHex(number),
    hash: numberToHex(number, { size: 32 }),
    parentHash: numberToHex(number - 1, { size: 32 }),
    timestamp: numberToHex(Math.floor(NOW - (HEAD + ahead - number) * secondsPerBlock)),
    logsBloom: `0x${'0'.repeat(512)}`,
    transactions: [],
  })
  const server = createServer(async (request, response) => {
    const { id, params } = (await json(request)) as { id: number; params: string[] }
    const newest = params[0] === 'latest' && ++newestRead > 4 ? HEAD + ahead : HEAD
    const result = blockAt(params[0] === 'latest' ? newest : Number(params[0]))
    response.writeHead(200, { connection: 'close' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  servers.push(server)
  await new Promise<void>(resolve => server.listen(0, resolve))
  const rpc = createTransport([`http://127.0.0.1:${(server.address() as AddressInfo).port}`])
  return { rpc } as Chain
}

test('a block that a chain makes within ten seconds is waited for, however many there are until then', async () => {
  await untilReached(await chainWith(0.1, 60), BigInt(HEAD + 60))
  await untilReached(await chainWith(12, 1), BigInt(HEAD + 1))
})

test.each([
  { secondsPerBlock: 12, ahead: 4 },
  { secondsPerBlock: 2, ahead: 20 },
  { secondsPerBlock: 0.1, ahead: 200 },
])(
  'a block $ahead ahead of a chain with one every $secondsPerBlock s is refused at once',
  async ({ secondsPerBlock, ahead }) => {
    await expect(untilReached(await chainWith(secondsPerBlock, ahead), BigInt(HEAD + ahead))).rejects.toMatchObject({
      body: { code: 'MIN_BLOCK_AHEAD', details: { newestBlock: `${HEAD}` } },
    })
  },
)
