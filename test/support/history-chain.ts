import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestProject } from 'vitest/node'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { deploySuccessors, type Replaceable } from './migrations.ts'

/** Starts a chain that tests can reorg with `reorgChain`, with a second oracle and router to migrate to. */
export default async function setup(project: TestProject) {
  const devnet = await startDevnet({ blockMs: 60 })
  devnet.marketMaker.pause() // reorgs would drop its trades, and the amounts in these tests move no pool
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost')
    const ancestor = BigInt(searchParams.get('ancestor') ?? 0)
    const acts = { '/reorg': reorg, '/rewind': rewind, '/mine': () => devnet.setMining(true) }
    const failure = await acts[pathname as keyof typeof acts](devnet, ancestor).catch(String)
    response.writeHead(failure === undefined ? 204 : 500).end(failure)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  project.provide('successors', await deploySuccessors(devnet))
  project.provide('deployment', devnet.deployment)
  project.provide('reorgUrl', `http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  return async () => {
    await new Promise(resolve => server.close(resolve))
    await devnet.stop()
  }
}

/** Replaces all blocks after one while none is mined: anvil loses blocks for good if it mines during a reorg. */
async function reorg({ client, setMining }: Devnet, ancestor: bigint): Promise<undefined> {
  await setMining(false)
  try {
    const depth = Number((await client.getBlockNumber()) - ancestor)
    await client.request<{ Method: 'anvil_reorg'; Parameters: [number, []]; ReturnType: null }>({
      method: 'anvil_reorg',
      params: [depth, []],
    })
  } finally {
    await setMining(true)
  }
}

/**
 * Replaces all blocks after one by four empty ones, and mines no more. The node's pool gets none of their transactions.
 */
async function rewind({ client, setMining }: Devnet, ancestor: bigint): Promise<undefined> {
  await setMining(false)
  const send = (method: string, params: unknown[]) =>
    client.request<{ Method: string; Parameters: unknown[]; ReturnType: unknown }>({ method, params })
  await send('anvil_rollback', [Number((await client.getBlockNumber({ cacheTime: 0 })) - ancestor)])
  await send('anvil_dropAllTransactions', [])
  // Empty blocks of the same second would be the same blocks again.
  await send('anvil_setCoinbase', [`0x${crypto.randomUUID().replaceAll('-', '').padStart(40, '0')}`])
  await send('anvil_mine', ['0x4', '0x0'])
}

declare module 'vitest' {
  interface ProvidedContext {
    /**
     * Where `POST /reorg?ancestor=n` and `/rewind?ancestor=n` take back blocks of the history project's chain, and
     * `/mine` mines.
     */
    reorgUrl: string
    /** The oracle and the router that the history project's chain can migrate to. */
    successors: Replaceable
  }
}
