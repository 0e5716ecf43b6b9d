import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Body } from './body.ts'

export const ATS = join(import.meta.dirname, '../../packages/cli/bin/ats.js')
/** The least work factor, so that tests do not wait for scrypt. */
export const FAST_SCRYPT = ['--scrypt-n', '8192']

export type AtsResult = { code: number | null; stdout: string; stderr: string }

/** Sends a process its input, and resolves with what it printed once it has ended. */
export async function finished(child: ChildProcessWithoutNullStreams, input: string): Promise<AtsResult> {
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => (output[name] += text))
  // A command that does not read its input may exit before it arrives.
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  const code = await new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve))
  return { code, ...output }
}
export type AtsOptions = { input?: string; env?: Record<string, string> }
export type Ats = ReturnType<typeof createAts>

/** Returns a way to run `ats` with a folder of its own. `transcript` collects everything that it ever prints. */
export function createAts(given: Record<string, string> = {}, { node = process.execPath, bin = ATS } = {}) {
  const home = mkdtempSync(join(tmpdir(), 'ats-'))
  let env: Record<string, string> = {
    PATH: process.env.PATH ?? '',
    HOME: home,
    ATS_HOME: home,
    ATS_PASSWORD: 'correct horse',
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? '',
    ...given,
  }
  let transcript = ''

  async function run(args: string[], { input = '', env: more = {} }: AtsOptions = {}): Promise<AtsResult> {
    const result = await finished(spawn(node, [bin, ...args], { env: { ...env, ...more } }), input)
    transcript += result.stdout + result.stderr
    return result
  }

  return {
    home,
    run,
    get env() {
      return env
    },
    set env(changed) {
      env = changed
    },
    get transcript() {
      return transcript
    },
    /** Runs a command that must succeed and returns its JSON. */
    async json(args: string[], options?: AtsOptions): Promise<Body> {
      const { code, stdout, stderr } = await run([...args, '-o', 'json'], options)
      if (code !== 0) throw new Error(`ats ${args.join(' ')} exited with ${code}:\n${stderr}`)
      return JSON.parse(stdout)
    },
    /** Runs a command that must fail and returns its error. */
    async failure(args: string[], options?: AtsOptions): Promise<Body> {
      const { code, stderr } = await run([...args, '-o', 'json'], options)
      const lines = stderr.trim().split('\n')
      return { exit: code, ...JSON.parse(lines.at(-1) ?? '') }
    },
    /** Imports a key. */
    importKey(name: string, privateKey: string): Promise<Body> {
      return this.json(['key', 'import', name, ...FAST_SCRYPT], { input: `${privateKey}\n` })
    },
    remove: () => rmSync(home, { recursive: true, force: true }),
  }
}
