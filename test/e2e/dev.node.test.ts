import { execFile, spawn } from 'node:child_process'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { createPublicClient, erc20Abi, http } from 'viem'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { expect, it } from 'vitest'
import { readDeployment } from '../../devnet/deployment.ts'

const root = join(import.meta.dirname, '../..')
const run = promisify(execFile)

/** Returns a port that nothing listens on. */
async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise(resolve => server.close(resolve))
  return port
}

const responds = (url: string) =>
  fetch(url).then(
    () => true,
    () => false,
  )

it('npm run dev prints five lines, is controlled by npm run devnet:…, and ends with its children on SIGTERM', async () => {
  const [chainPort, port] = [await freePort(), await freePort()]
  const env = { ...process.env, CHAIN_PORT: `${chainPort}`, PORT: `${port}`, MARKET_SESSIONS: 'enforced' }
  const dev = spawn('npm', ['run', '--silent', 'dev'], { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] })
  const lines: string[] = []
  for await (const line of createInterface({ input: dev.stdout })) {
    lines.push(line)
    if (line.includes('Ctrl-C')) break
  }
  expect(lines.map(line => line.split(' ')[0])).toEqual(['service', 'chain', 'money', 'markets', 'next'])

  const account = privateKeyToAddress(generatePrivateKey())
  await run('npm', ['run', '--silent', 'devnet:fund', '--', account, '2.5'], { cwd: root })
  const { rpcUrl, contracts } = readDeployment()
  const client = createPublicClient({ transport: http(rpcUrl) })
  const balance = { address: contracts.USDC, abi: erc20Abi, functionName: 'balanceOf', args: [account] } as const
  expect(await client.readContract(balance)).toBe(2_500_000n)
  expect(await client.getBalance({ address: account })).toBe(10n ** 18n)

  for (const session of ['closed', 'regular']) {
    await run('npm', ['run', '--silent', 'devnet:session', '--', session], { cwd: root })
    const token = async () => {
      const { tokens } = (await (await fetch(`http://127.0.0.1:${port}/tokens`)).json()) as {
        tokens: { symbol: string; market: { session: string } }[]
      }
      return tokens.find(({ symbol }) => symbol === 'NVDA')?.market.session
    }
    await expect.poll(token, { timeout: 30_000 }).toBe(session)
  }

  const exited = new Promise(resolve => dev.once('exit', resolve))
  process.kill(dev.pid as number, 'SIGTERM')
  await exited
  await expect.poll(() => responds(rpcUrl), { timeout: 60_000 }).toBe(false)
  await expect.poll(() => responds(`http://127.0.0.1:${port}/health`), { timeout: 60_000 }).toBe(false)
})
