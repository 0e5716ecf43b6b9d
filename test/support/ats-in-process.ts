import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Hex } from 'viem'
import { vi } from 'vitest'
import { storeKey } from '../../packages/cli/src/keys/key-folder.ts'
import { runProgram } from '../../packages/cli/src/run-program.ts'
import type { AtsResult } from './ats.ts'
import type { Body } from './body.ts'

const PASSWORD = 'correct horse'
/** The least work factor, so that tests do not wait for scrypt. */
const SCRYPT_N = 8_192

/**
 * Returns a way to run commands of `ats` in this process, with a folder of its own: what a command of its own would
 * load takes longer than what it does.
 */
export function createAtsInProcess(env: Record<string, string>) {
  const home = mkdtempSync(join(tmpdir(), 'ats-'))

  async function run(args: string[]): Promise<AtsResult> {
    const output = { stdout: '', stderr: '' }
    for (const [name, value] of Object.entries({ ATS_HOME: home, ATS_PASSWORD: PASSWORD, ...env }))
      vi.stubEnv(name, value)
    const spies = (['stdout', 'stderr'] as const).map(name =>
      vi.spyOn(process[name], 'write').mockImplementation(text => {
        output[name] += text
        return true
      }),
    )
    try {
      return { code: await runProgram(args), ...output }
    } finally {
      for (const spy of spies) spy.mockRestore()
      vi.unstubAllEnvs()
    }
  }

  return {
    home,
    run,
    /** Runs a command that must succeed and returns its JSON. */
    async json(...args: string[]): Promise<Body> {
      const { code, stdout, stderr } = await run([...args, '-o', 'json'])
      if (code !== 0) throw new Error(`ats ${args.join(' ')} exited with ${code}:\n${stderr}`)
      return JSON.parse(stdout)
    },
    /** Runs a command that must fail and returns its error, with what it printed before. */
    async failure(...args: string[]): Promise<Body> {
      const { code, stdout, stderr } = await run([...args, '-o', 'json'])
      const printed = stdout === '' ? {} : { stdout: JSON.parse(stdout) }
      return { exit: code, ...printed, ...JSON.parse(stderr.trim().split('\n').at(-1) ?? '') }
    },
    importKey: (name: string, privateKey: Hex) =>
      storeKey(home, { name, privateKey, password: PASSWORD, scryptN: SCRYPT_N }),
    remove: () => rmSync(home, { recursive: true, force: true }),
  }
}
