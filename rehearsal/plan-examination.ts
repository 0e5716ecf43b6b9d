import { createHash } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { MARKET_KINDS, type MarketKind } from '../packages/cli/src/commands/rehearse.ts'
import { disguiseTape, fitTape, refuseTooHigh, resampleTape, windowsOf } from './derive-market.ts'
import type { RunSpec } from './examination.ts'
import { generateMarket } from './generate-market.ts'
import { hashOf, type Tape } from './tape.ts'

/** Which markets an examination plays. */
export type MarketPlan = {
  seeds: number
  days: number
  kinds: readonly MarketKind[]
  allHours: boolean
  windows: number
  disguises: number
}

const DEFAULTS = { vol: 45, drift: 8, correlation: 0.4 }

/**
 * Returns the runs of an examination. Seeds take turns among the kinds of generated markets and, with a tape, the
 * resampled one. Windows, disguises and what these are compared with need a tape.
 */
export function planRuns({ seeds, kinds, windows, disguises }: MarketPlan, hasTape: boolean): RunSpec[] {
  const generated = kinds.map(generator => ({ kind: 'generated', generator }) as const)
  const sources = hasTape ? [{ kind: 'resampled' } as const, ...generated] : generated
  const seeded = Array.from({ length: seeds }, (_, index): RunSpec => {
    const [seed, source] = [index + 1, sources[index % sources.length] as (typeof sources)[number]]
    return { id: `seed-${seed}`, seed, market: { ...source, seed } }
  })
  if (!hasTape) return seeded
  const numbered = (count: number, run: (index: number) => RunSpec) =>
    Array.from({ length: count }, (_, i) => run(i + 1))
  return [
    ...seeded,
    ...numbered(windows, index => ({ id: `window-${index}`, seed: index, market: { kind: 'window', index } })),
    ...(disguises > 0 ? [{ id: 'original', seed: 1, market: { kind: 'original' } } as const] : []),
    // Each has the seed of the original's agent, so that the market alone differs.
    ...numbered(disguises, seed => ({ id: `disguise-${seed}`, seed: 1, market: { kind: 'disguised', seed } })),
  ]
}

/** Returns the tape of a run; `tape` is the one that the examination was given. */
export function tapeOfRun({ market }: RunSpec, { days, allHours, windows }: MarketPlan, tape?: Tape): Tape {
  if (market.kind === 'generated') {
    const fitted = tape === undefined ? DEFAULTS : fitTape(tape)
    const generated = generateMarket({ ...fitted, kind: market.generator, seed: market.seed, days, allHours })
    return tape === undefined ? generated : refuseTooHigh(generated, tape)
  }
  if (tape === undefined) throw new Error(`A ${market.kind} market needs a tape.`)
  if (market.kind === 'resampled') return refuseTooHigh(resampleTape(tape, market.seed), tape)
  if (market.kind === 'window') return windowsOf(tape, windows)[market.index - 1] as Tape
  return market.kind === 'original' ? tape : disguiseTape(tape, market.seed).tape
}

const sha256 = (...parts: (string | Buffer)[]): string => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part).update('\0')
  return hash.digest('hex')
}

/** What an agent is, as its author declares it: its command, and the files that the command names. */
export type DeclaredAgent = { command: string[]; files: Record<string, string>; hash: string }

export function declareAgent(command: readonly string[]): DeclaredAgent {
  const files = Object.fromEntries(
    command.filter(part => existsSync(part) && statSync(part).isFile()).map(part => [part, sha256(readFileSync(part))]),
  )
  return { command: [...command], files, hash: sha256(JSON.stringify([command, files])) }
}

const root = join(import.meta.dirname, '..')

/** Returns the hash of everything that decides the markets and the fills, but for the tapes of single runs. */
export function marketHash(plan: MarketPlan, tape: Tape | undefined, version: string): string {
  return sha256(JSON.stringify(plan), tape === undefined ? '' : hashOf(tape), version, contractsHash())
}

/** Returns the hash of the contracts' bytecode. */
export const contractsHash = (): string => sha256(readFileSync(join(root, 'contracts/bytecode.json')))

/** Returns the hash of a value as JSON. */
export const jsonHash = (value: unknown): string => sha256(JSON.stringify(value))

/** Every kind of generated market, which an examination plays by default. */
export const ALL_KINDS: readonly MarketKind[] = MARKET_KINDS
