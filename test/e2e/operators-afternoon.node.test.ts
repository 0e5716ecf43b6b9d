import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { freePort } from '../../devnet/anvil.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { startWrangler, type Worker } from '../../devnet/worker.ts'
import { FAST_SCRYPT } from '../support/ats.ts'
import type { Body } from '../support/body.ts'
import { deployConfigOf, operatorsOf } from '../support/deploy-config.ts'
import { parseOpenMetrics } from '../support/open-metrics.ts'
import { codeBlocksOf, createOperatorsFolder, type OperatorsFolder, type Outcome } from '../support/operators-folder.ts'

// Runs the section "An afternoon" of docs/operations.md as it is written: each test is a part of it, and they build on one
// another. The page's values are replaced where they name somebody else's: URLs, keys, addresses.

const CHAIN_ID = 421614
const TWO_DAYS = 172_800
const VARS = '.dev.vars.arbitrum-sepolia'
const OPERATOR_SECRET = 'operator-of-the-afternoon'
const sections = codeBlocksOf('docs/operations.md', 'An afternoon')
const unread = new Set([...sections.values()].flat())

let devnet: Devnet
let folder: OperatorsFolder
let port: number
let url: string
let worker: Worker | undefined

/** What arrives at the receiver of the webhook. */
const received: { text: string; headers: Record<string, string> }[] = []
const receiver = createServer(async (request, response) => {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  received.push({ text, headers: request.headers as Record<string, string> })
  response.writeHead(204).end()
})
/** The operator's own price server. */
const prices = createServer(async (_, response) => {
  const { timestamp } = await devnet.client.getBlock()
  response.end(JSON.stringify({ NVDA: { price: '180.25', time: Number(timestamp) } }))
})
const pricesUrl = () => `http://127.0.0.1:${(prices.address() as AddressInfo).port}/`
const listen = (server: typeof receiver) =>
  new Promise<string>(resolve => {
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`))
  })

beforeAll(async () => {
  devnet = await startDevnet({ chainId: CHAIN_ID, mineEveryMs: 100 })
  devnet.marketMaker.pause()
  await devnet.increaseTime(700) // the average of a pool needs ten minutes
  port = await freePort()
  url = `http://127.0.0.1:${port}`
  const { executor, newExecutor, deployer } = operatorsOf(devnet)
  folder = createOperatorsFolder({
    ATS_OUTPUT: 'json',
    ATS_PASSWORD: 'correct horse',
    OPERATOR_SECRET,
    NODE_URL: devnet.rpcUrl,
    DEPLOYER: deployer.privateKey,
    OLD: executor.address,
    NEW: newExecutor.address,
    HOOK_URL: await listen(receiver),
  })
  await listen(prices)
  folder.write('deploy.json', deployConfigOf(devnet))
  const names = ['proposer', 'guardian', 'updater', 'depositor', 'operator', 'payer'] as const
  const holders = operatorsOf(devnet)
  await Promise.all(
    names.map(name =>
      succeed(`printf %s ${holders[name].privateKey} | npx ats key import ${name} ${FAST_SCRYPT.join(' ')}`),
    ),
  )
})
afterAll(async () => {
  await worker?.stop()
  for (const server of [receiver, prices]) server.close()
  folder?.remove()
  await devnet?.stop()
})

/** Returns the next code of a part of the page. */
function take(heading: string, language = 'sh'): string {
  const block = (sections.get(heading) ?? []).find(block => block.language === language && unread.has(block))
  if (block === undefined) throw new Error(`docs/operations.md has no more ${language} under ${heading}`)
  unread.delete(block)
  return block.code.replaceAll('http://127.0.0.1:8787', url).replaceAll(/--port \d+/g, '')
}

const exports = take('')
  .replace('RPC_URL=…', 'RPC_URL=$NODE_URL')
  .replace('DEPLOYER_PRIVATE_KEY=…', 'DEPLOYER_PRIVATE_KEY=$DEPLOYER')

const run = (command: string): Promise<Outcome> =>
  folder.run(exports + command.replace(/ats key new \w+/, `$& ${FAST_SCRYPT.join(' ')}`))

/** Runs a command that must succeed and returns its output. */
async function succeed(command: string): Promise<string> {
  const { code, stdout, stderr } = await run(command)
  if (code !== 0) throw new Error(`${command}\nexited with ${code}:\n${stdout}\n${stderr}`)
  return stdout
}

/** Runs the commands of a block one after another, up to one that fails without being expected to. */
async function runAll(block: string, expected: Record<number, number> = {}): Promise<string[]> {
  const commands = block
    .replaceAll(/ {2,}#.*$/gm, '')
    .replaceAll(/\|\n +/g, '| ')
    .trim()
    .split('\n')
  const outputs: string[] = []
  for (const [index, command] of commands.entries()) {
    if (expected[index] === undefined) {
      outputs.push(await succeed(command))
      continue
    }
    const { code, stdout, stderr } = await run(command)
    expect({ command, code, stderr }).toMatchObject({ command, code: expected[index] })
    outputs.push(stdout === '' ? stderr : stdout)
  }
  return outputs
}

type Finding = { check: string; subject: string; verdict: string; sentence: string; fix: string | null }
const findings = (output = ''): Finding[] => JSON.parse(output).findings
const faults = (output: string | undefined) => findings(output).filter(({ verdict }) => verdict !== 'ok')
const get = async (path: string): Promise<Body> => (await fetch(`${url}${path}`)).json()
const trades = async (): Promise<Body[]> => JSON.parse(await succeed('npx ats trades')).trades

/** Starts the service with the page's command, as a deploy does. */
async function startService(command: string) {
  await worker?.stop()
  worker = await startWrangler({
    port,
    args: command.trim().replace('npx wrangler ', '').split(' '),
    cwd: folder.path,
    logs: join(folder.path, 'logs'),
  })
}
let serviceCommand = ''

it('contracts, their verification and the environment: the doctor names what is missing', async () => {
  const heading = 'Contracts and environment'
  const [deployed, verified, written, unset] = await runAll(take(heading), { 3: 12 })
  expect(deployed).toMatch(/Verified: \d+ wired values/)
  expect(verified).toMatch(/Verified: \d+ wired values/)
  expect(written).toContain('npm run deploy -- --env arbitrum-sepolia --secrets')
  console.log(JSON.stringify(faults(unset), null, 1))

  const { executor, relayer, updater, keeper } = operatorsOf(devnet)
  folder.fillIn(VARS, {
    RPC_URL: devnet.rpcUrl,
    EXECUTOR_PRIVATE_KEY: executor.privateKey,
    RELAYER_PRIVATE_KEY: relayer.privateKey,
    ORACLE_UPDATER_PRIVATE_KEY: updater.privateKey,
    KEEPER_PRIVATE_KEY: keeper.privateKey,
    OPERATOR_SECRET,
  })
  const block = '[env.arbitrum-sepolia.vars]\n'
  const settings = take(heading, 'toml').replace('https://prices.example.org/quotes', pricesUrl())
  folder.write('wrangler.toml', folder.read('wrangler.toml').replace(block, `${block}${settings}`))
  const { code, stdout } = await run('npx ats doctor')
  console.log(code, JSON.stringify(faults(stdout), null, 1))

  const outputs = await runAll(take(heading))
  console.log(JSON.stringify(faults(outputs.at(-1)), null, 1))
})

it('the service starts and the doctor finds nothing to do', async () => {
  serviceCommand = take('The service')
  await startService(serviceCommand)
  const { code, stdout, stderr } = await run('npx ats doctor')
  console.log(code, stdout && JSON.stringify(faults(stdout), null, 1), stderr)
})
