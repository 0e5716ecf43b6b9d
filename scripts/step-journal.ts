import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { Address, Hex } from 'viem'
import type { Journal } from '../devnet/sender.ts'

/** Opens the journal of a run: the block at which the first one started, then one line per mined step. */
export function openJournal(path: string, block: bigint): Journal & { startedAtBlock: string } {
  if (!existsSync(path)) writeFileSync(path, `${block}\n`)
  const [startedAtBlock = '0', ...lines] = readFileSync(path, 'utf8').trim().split('\n')
  const done = new Map(lines.map(line => JSON.parse(line) as [Hex, Address | null]))
  if (done.size > 0) console.log(`Continuing after ${done.size} steps of ${path}.`)
  return {
    startedAtBlock,
    done,
    add(step, contract) {
      done.set(step, contract)
      appendFileSync(path, `${JSON.stringify([step, contract])}\n`)
    },
  }
}

/** Returns the key that pays for the run. */
export function deployerKey(): Hex {
  const privateKey = process.env.DEPLOYER_PRIVATE_KEY as Hex | undefined
  if (!privateKey || !/^0x[0-9a-fA-F]{64}$/.test(privateKey))
    throw new Error('Set DEPLOYER_PRIVATE_KEY (0x and 64 hex digits).')
  return privateKey
}
