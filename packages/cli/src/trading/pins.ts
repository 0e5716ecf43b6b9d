import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Pins } from '@agent-trading-service/client'
import { getAddress } from 'viem'
import { Failure } from '../failure.ts'
import { makePrivateFolder } from '../keys/private-mode.ts'
import type { Reader } from './create-reader.ts'

/** What a service may have signed, by its origin: learned at the first contact and held from then on. */
type StoredPins = Record<string, Pins>

const pinsPath = (home: string) => join(home, 'deployments.json')

/**
 * Returns the chain and the contracts that a service may have signed. The first contact stores what the service names;
 * later ones hold it to that, so a service that is taken over gets no signature for other contracts.
 */
export async function pinsOf(home: string, url: string, reads: Reader): Promise<Pins> {
  const { origin } = new URL(url)
  const known = readStored(home)[origin]
  if (known) return known
  const { chainId, contracts } = await reads.getDiscovery()
  if (chainId === null || contracts.TradeRouter === undefined)
    throw new Failure('unavailable', `The service at ${url} names no chain or no router.`, {
      code: 'NOT_DEPLOYED',
      remedy: 'Check the URL, or ask the operator.',
    })
  const pins = {
    chainId,
    tradeRouter: contracts.TradeRouter,
    ...(contracts.AgentRegistry && { agentRegistry: contracts.AgentRegistry }),
    ...(contracts.OwnerControls && { ownerControls: contracts.OwnerControls }),
  } as Pins
  store(home, { ...readStored(home), [origin]: pins })
  return pins
}

/** Adds the contract for the messages of owners, if it was not known at the first contact, and stores it like the others. */
export async function withOwnerControls(home: string, url: string, reads: Reader): Promise<Pins> {
  const { origin } = new URL(url)
  const stored = readStored(home)
  const { OwnerControls } = (await reads.getDiscovery()).contracts
  const known = { ...stored[origin], ...(OwnerControls && { ownerControls: getAddress(OwnerControls) }) }
  store(home, { ...stored, [origin]: known })
  return known
}

/** Tells whether two URLs belong to one deployment, as far as this machine knows. */
export function isSameDeployment(home: string, one: string, other: string): boolean {
  const [first, second] = [one, other].map(url => new URL(url).origin) as [string, string]
  if (first === second) return true
  const { [first]: known, [second]: given } = readStored(home)
  return known !== undefined && known.chainId === given?.chainId && known.tradeRouter === given?.tradeRouter
}

function readStored(home: string): StoredPins {
  const path = pinsPath(home)
  if (!existsSync(path)) return {}
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as StoredPins
  } catch {
    throw new Failure('mismatch', `${path} is not JSON, so the contracts cannot be compared. Nothing was signed.`, {
      code: 'PINS_INVALID',
      remedy: 'Correct the file, or delete it to learn the contracts again.',
    })
  }
}

function store(home: string, pins: StoredPins): void {
  makePrivateFolder(home)
  const temporary = `${pinsPath(home)}.${process.pid}`
  writeFileSync(temporary, `${JSON.stringify(pins, null, 2)}\n`, { mode: 0o600 })
  renameSync(temporary, pinsPath(home))
}
