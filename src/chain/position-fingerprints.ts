import type { Address, Hex } from 'viem'
import { positionFingerprintsAbi } from '../../contracts-abi/position-fingerprints.ts'
import { positionFingerprintsCode } from '../../contracts-abi/position-fingerprints-bytecode.ts'
import { RefusedByNode } from '../rpc/node-errors.ts'
import type { TradingChain } from './configured-chain.ts'
import { type CallTree, call, optional, readTree, type TreeReading } from './read-tree.ts'

/** An address without code: "fingerprint reader" in ASCII. */
const READER: Address = '0x66696e6765727072696e74207265616465720000'
const CODE_AT_READER: Record<Address, { code: Hex }> = { [READER]: { code: positionFingerprintsCode } }
/** Bytes of an id, and of a fingerprint, in hex digits. */
const DIGITS = 16

/** Hashes of all that decides about the exits of positions, by position. */
export type Fingerprints = ReadonlyMap<bigint, Hex>

/** After a node refused a state override, reads have no fingerprints for this long. */
const RETRY_MS = 600_000
const refusedAt = new WeakMap<TradingChain, number>()

/**
 * Reads a tree that contains the call that it is given, which returns the fingerprints of positions. The call is undefined
 * if there are no positions, or if the node does not support state overrides. Throws CHAIN_UNREACHABLE.
 */
export async function readWithFingerprints<const Tree extends CallTree>(
  chain: TradingChain,
  positionIds: readonly bigint[],
  treeOf: (fingerprints: ReturnType<typeof fingerprintsCall> | undefined) => Tree,
): Promise<TreeReading<Tree>> {
  if (positionIds.length > 0 && Date.now() >= (refusedAt.get(chain) ?? 0) + RETRY_MS) {
    const tree = treeOf(fingerprintsCall(chain, positionIds))
    const reading = await readTree(chain, tree, undefined, CODE_AT_READER).catch(error => {
      if (!(error.cause instanceof RefusedByNode)) throw error
      refusedAt.set(chain, Date.now())
      return undefined
    })
    if (reading) return reading
  }
  return readTree(chain, treeOf(undefined))
}

function fingerprintsCall({ trading, contracts }: TradingChain, positionIds: readonly bigint[]) {
  const packed: Hex = `0x${positionIds.map(id => id.toString(16).padStart(DIGITS, '0')).join('')}`
  const reader = { address: READER, abi: positionFingerprintsAbi }
  return optional(call(reader, 'fingerprintsOf', [trading.PositionManager, contracts.AgentRegistry, packed]))
}

/** Returns the fingerprints in what that call returned. */
export function decodeFingerprints(positionIds: readonly bigint[], bytes: Hex | undefined): Fingerprints {
  if (bytes?.length !== 2 + DIGITS * positionIds.length) return new Map()
  return new Map(positionIds.map((id, index) => [id, `0x${bytes.slice(2 + DIGITS * index, 2 + DIGITS * (index + 1))}`]))
}
