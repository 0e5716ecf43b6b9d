import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodeClaim } from '@agent-trading-service/protocol/examination-claim'
import { afterAll, expect, it, vi } from 'vitest'
import { storeKey } from '../../packages/cli/src/keys/key-folder.ts'
import { MIN_SCRYPT_N } from '../../packages/cli/src/keys/keystore.ts'

const folder = mkdtempSync(join(tmpdir(), 'agent-trading-service-examination-'))
afterAll(() => rmSync(folder, { recursive: true }))

const SOURCE = '--conditions=@agent-trading-service/source'
const AGENT = [process.execPath, SOURCE, 'test/support/rehearsed-agent.ts', 'NVDA', 'AAPL']
const PASSWORD = 'correct horse'
const home = join(folder, 'home')
const { address } = storeKey(home, {
  name: 'author',
  privateKey: `0x${'07'.repeat(32)}`,
  password: PASSWORD,
  scryptN: MIN_SCRYPT_N,
})

type Run = { code: number | null; stdout: string; stderr: string }

const examine = (...args: string[]): Promise<Run> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [SOURCE, 'scripts/examine.ts', ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ATS_HOME: home, ATS_PASSWORD: PASSWORD },
    })
    let [stdout, stderr] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    child.once('error', reject).once('close', code => resolve({ code, stdout, stderr }))
  })

const filesIn = (out: string) =>
  readdirSync(out, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.json'))
    .map(name => join(out, name))

it('an examination resumes where it stopped, and anybody recomputes its certificate to the same result', async () => {
  const out = join(folder, 'first')
  const certificate = join(folder, 'certificate.json')
  const plan = ['--seeds', '2', '--days', '1', '--market', 'gbm', '--out', out]
  const first = await examine(...plan, '--', ...AGENT)
  expect(first.code, first.stderr).toBe(0)
  expect(first.stdout).toContain('2 runs of')
  const [kept, lost] = filesIn(out) as [string, string]
  const before = { keptAt: statSync(kept).mtimeMs, lost: readFileSync(lost, 'utf8') }
  rmSync(lost)

  const second = await examine(...plan, '--certificate', certificate, '--key', 'author', '--', ...AGENT)
  expect(second.code, second.stderr).toBe(0)
  expect(second.stderr).toContain('1 of 2 runs are stored from before')
  expect(second.stdout.startsWith(first.stdout)).toBe(true)
  const { hash } = JSON.parse(readFileSync(certificate, 'utf8'))
  expect(decodeClaim(`https://agents.example/agent.json${second.stdout.trim().split('\n').at(-1)}`)?.hash).toBe(hash)
  expect(statSync(kept).mtimeMs).toBe(before.keptAt)
  expect(readFileSync(lost, 'utf8')).toBe(before.lost)

  const elsewhere = join(folder, 'elsewhere')
  const recomputed = await examine('--recompute', certificate, '--out', elsewhere, '--', ...AGENT)
  expect(recomputed.code, recomputed.stderr).toBe(0)
  expect(recomputed.stdout).toContain(`The certificate ${hash} of ${address} holds.`)
  // What is stored next to it proves nothing: the runs are played again.
  writeFileSync(lost, before.lost.replace('"trades":', '"trades":9'))
  const atHome = await examine('--recompute', certificate, '--out', out, '--', ...AGENT)
  expect(atHome.stdout).toContain(`The certificate ${hash} of ${address} holds.`)
  expect(readFileSync(lost, 'utf8')).toBe(before.lost)
  const other = await examine('--recompute', certificate, '--out', elsewhere, '--', ...AGENT.slice(0, -1))
  expect(other.code).toBe(1)
  expect(other.stdout).toContain('DIFFERS: the agent is another one')
  // Two agents were examined on these markets by now.
  expect(other.stdout).toContain('2 variants tried')
})

it('an examination without what it needs is refused before anything is played', async () => {
  for (const [args, message] of [
    [
      ['--recompute', join(folder, 'none.json')],
      '--recompute needs the result of an agent. Name its program after --.',
    ],
    [['--recompute', join(folder, 'none.json'), '--', ...AGENT], 'none.json cannot be read (ENOENT).'],
    [
      ['--report', join(folder, 'none/r.html'), '--', ...AGENT],
      'none/r.html cannot be written (ENOENT). Pass a path in',
    ],
    [['--windows', '2', '--', ...AGENT], 'Windows and disguises are made of a tape. Pass the tape with --tape.'],
    [['--seeds', 'ten'], "argument 'ten' is invalid. A whole number from 0 to 100000 is expected."],
    [['--seeds', '0', '--', ...AGENT], 'Without seeds and without a tape there is no market to play.'],
  ] as const) {
    const refused = await examine(...args)
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain(message)
  }
})

it('an examination that is killed takes its program along', async () => {
  const out = join(folder, 'killed')
  const program = 'console.log(process.pid); setInterval(() => {}, 1_000)'
  const args = ['--seeds', '1', '--days', '1', '--out', out, '--', process.execPath, '-e', program]
  const child = spawn(process.execPath, [SOURCE, 'scripts/examine.ts', ...args], { stdio: 'ignore' })
  const logged = () =>
    readdirSync(out, { recursive: true, encoding: 'utf8' })
      .filter(name => name.endsWith('.log'))
      .map(name => Number(readFileSync(join(out, name), 'utf8')))
  const [pid = 0] = await vi.waitUntil(() => existsSync(out) && logged().some(Boolean) && logged(), { timeout: 60_000 })
  child.kill()
  await expect.poll(() => existsSync(`/proc/${pid}`), { timeout: 10_000 }).toBe(false)
})

it('an examination whose program does not start says so, without a trace of the stack', async () => {
  const plan = ['--seeds', '1', '--days', '1', '--out', join(folder, 'unstarted')]
  const { code, stderr } = await examine(...plan, '--', 'no-such-program')
  expect(code).toBe(2)
  expect(stderr).toBe(
    '0 of 1 runs\nseed-1: The agent "no-such-program" does not start: spawn no-such-program ENOENT. Check its command.\n',
  )
})

it('an examination without an agent only plays its markets', async () => {
  const [plan, out] = [['--seeds', '1', '--days', '1'], join(folder, 'nobody')]
  const run = await examine(...plan, '--out', out)
  expect(run).toMatchObject({ code: 0, stdout: '1 markets of 78 bars were played to nobody.\n' })
  const [stored = ''] = filesIn(out)
  writeFileSync(stored, '{')
  const broken = await examine(...plan, '--out', out)
  expect(broken).toMatchObject({ code: 2, stderr: expect.stringContaining(`${stored} is not a run. Delete it`) })
})
