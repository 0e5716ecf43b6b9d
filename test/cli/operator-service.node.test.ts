import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generatePrivateKey } from 'viem/accounts'
import { afterAll, beforeAll, expect, inject, it } from 'vitest'
import { workerVars } from '../../devnet/worker-vars.ts'
import { createAts } from '../support/ats.ts'
import { createAtsInProcess } from '../support/ats-in-process.ts'
import type { Body } from '../support/body.ts'
import { OPERATOR_SECRET } from '../support/running-service.ts'

// What the operator does with a running service.

const deployment = inject('deployment')
const url = inject('serviceUrl')
const ats = createAtsInProcess({ ATS_URL: url })
const vars = join(ats.home, 'vars')
beforeAll(() => {
  const lines = Object.entries({ ...workerVars(deployment), OPERATOR_SECRET }).map(
    ([name, value]) => `${name}='${value}'\n`,
  )
  writeFileSync(vars, lines.join(''), { mode: 0o600 })
})
afterAll(() => ats.remove())

const read = async (path: string): Promise<Body> => (await fetch(`${url}${path}`)).json() as Promise<Body>
const indexOf = (): Promise<Body> => ats.json('admin', 'replay', '--vars', vars, '--dry-run')

it('finds nothing wrong in a running service whose database has every migration', async () => {
  const { code, stdout } = await ats.run(['doctor', '--vars', vars, '-o', 'json'])
  const { findings } = JSON.parse(stdout) as { findings: Body[] }
  expect([0, 11]).toContain(code)
  expect(findings.filter(({ verdict }) => verdict === 'wrong')).toEqual([])
  expect(findings).toContainEqual(expect.objectContaining({ check: 'migrations', verdict: 'ok' }))
  expect(findings).toContainEqual(expect.objectContaining({ check: 'service', subject: url, verdict: 'ok' }))
})

it('takes the accounts from the service where their keys are secrets of it', async () => {
  const { PRICE_PROVIDER: _, ...variables } = workerVars(deployment)
  const path = join(ats.home, 'vars-without-keys')
  const lines = Object.entries(variables).filter(([name]) => !name.includes('KEY'))
  writeFileSync(path, lines.map(([name, value]) => `${name}='${value}'\n`).join(''))
  const { findings } = JSON.parse((await ats.run(['doctor', '--vars', path, '-o', 'json'])).stdout)
  const { executor } = deployment.accounts
  expect(findings).toContainEqual(
    expect.objectContaining({ check: 'role', sentence: `The executor ${executor.address} has its role.` }),
  )
  expect(findings.filter(({ subject }: Body) => subject === 'EXECUTOR_PRIVATE_KEY')).toEqual([])
})

it('drops the index and the event log and builds both again', async () => {
  const trader = createAts({ ATS_URL: url, ATS_KEY: 'trader' })
  try {
    await trader.importKey('trader', generatePrivateKey())
    await trader.importKey('payer', deployment.accounts.payer.privateKey)
    const { agentId } = await trader.json(['register', '--name', 'replayed', '--payer', 'payer'])
    const agentIds = async () =>
      (await read('/agents?limit=50')).agents?.map((agent: Body) => agent.agentId) as string[] | undefined
    const before = await agentIds()
    expect(before).toContain(agentId)

    const events = await fetch(`${url}/events`)
    const { index } = await indexOf()
    expect(index).toMatchObject({
      startBlock: '0',
      cursor: expect.stringMatching(/^\d+$/),
      migrations: { pending: [] },
    })
    expect(await ats.failure('admin', 'replay', '--vars', vars)).toMatchObject({ code: 'CONFIRMATION_MISSING' })
    await ats.json('admin', 'replay', '--vars', vars, '--yes')

    expect(await nextReorg(events)).toMatchObject({ commonAncestor: null })
    await expect
      .poll(async () => Number((await indexOf()).index.cursor ?? -1), { timeout: 240_000 })
      .toBeGreaterThanOrEqual(Number(index.cursor))
    expect(await agentIds()).toEqual(before)
  } finally {
    trader.remove()
  }
})

it('closes a kind of intake with a reason, and opens it again', async () => {
  const reasonOf = ({ intake }: Body) => intake.find(({ kind }: Body) => kind === 'ownerStops').reason
  const intake = (...args: string[]): Promise<Body> => ats.json('admin', 'intake', ...args, '--vars', vars)
  const close = ['close', 'ownerStops', '--reason', 'Tried by a test.']
  expect(reasonOf(await intake(...close, '--dry-run'))).toBeNull()
  expect(reasonOf(await intake(...close))).toBe('Tried by a test.')
  expect(reasonOf(await intake('list'))).toBe('Tried by a test.')
  expect(reasonOf(await intake('open', 'ownerStops'))).toBeNull()
})

it('resumes a lane by its account, and names none of another account', async () => {
  const { executor, depositor } = deployment.accounts
  expect(await ats.json('admin', 'lane', 'resume', executor.address, '--vars', vars)).toEqual({
    address: executor.address,
    wasPaused: false,
  })
  const other = await ats.failure('admin', 'lane', 'resume', depositor.address, '--vars', vars)
  expect(other).toMatchObject({ code: 'LANE_NOT_FOUND' })
})

it('refuses to drop anything without the secret', async () => {
  const response = await fetch(`${url}/operator/index/replay`, { method: 'POST' })
  expect({ status: response.status, body: await response.json() }).toMatchObject({
    status: 401,
    body: { code: 'OPERATOR_ONLY' },
  })
})

/** Reads a stream up to its first reorg and returns its data. */
async function nextReorg(response: Response): Promise<Body> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  while (reader) {
    const { done, value } = await reader.read()
    if (done) break
    text += value
    const [, data] = /event: reorg\n(?:id: [^\n]*\n)?data: ([^\n]*)\n/.exec(text) ?? []
    if (data === undefined) continue
    await reader.cancel()
    return JSON.parse(data)
  }
  throw new Error(`The stream ended without a reorg:\n${text}`)
}

it('lists who takes the places for webhooks, and frees those of an agent', async () => {
  const webhooks = (...args: string[]): Promise<Body> => ats.json('admin', 'webhooks', ...args, '--vars', vars)
  expect(await webhooks('list')).toMatchObject({ maxPlaces: 1_000, agents: expect.any(Array) })
  const free = ['free', '1', '--reason', 'Tried by a test.']
  for (const args of [['list', '1'], [...free, '--dry-run'], free])
    expect(await webhooks(...args)).toMatchObject({ agentId: '1', webhooks: expect.any(Array) })
})
