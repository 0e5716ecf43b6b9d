import {
  concat,
  encodeAbiParameters,
  encodePacked,
  type Hex,
  hashTypedData,
  keccak256,
  stringToBytes,
  zeroHash,
} from 'viem'
import { TriggerType } from './enums.ts'
import type { ExitRule } from './exit-rule.ts'
import { digestOf, hashExits, type SignedMessage, signingTypes } from './typed-data.ts'

/** A signing mistake: its stable name, what was signed instead and what to do, and the digest that was signed. */
export type MistakenDigest = { mistake: string; problem: string; digest: Hex }

const EXITS_HASH =
  'keccak256(abi.encode(bytes32[] ruleHashes)), each keccak256(abi.encode(triggerType, triggerBps, exitBps))'

const ruleComponents = [
  { name: 'triggerType', type: 'uint8' },
  { name: 'triggerBps', type: 'int256' },
  { name: 'exitBps', type: 'uint16' },
] as const
const RULE_TYPEHASH = keccak256(stringToBytes('ExitRule(uint8 triggerType,int256 triggerBps,uint16 exitBps)'))

/** Yields the digests of messages whose exitsHash is over other rules, or computed in another way. */
export function* exitsHashMistakes({ domain, primaryType, message, exits }: SignedMessage): Generator<MistakenDigest> {
  if (exits === undefined || message.exitsHash === undefined) return
  const withExitsHash = (exitsHash: Hex, mistake: string, problem: string): MistakenDigest => ({
    mistake,
    problem,
    digest: digestOf(domain, primaryType, { ...message, exitsHash }),
  })

  for (const order of otherOrders(exits))
    yield withExitsHash(hashExits(order), 'exitsOrder', 'the exits were signed in another order than they were sent in')
  for (const { change, mistake } of ruleChanges)
    yield withExitsHash(hashExits(exits.map(change)), 'exitsKind', `the exits were signed ${mistake}`)
  for (const exitsHash of otherHashes(exits))
    yield withExitsHash(exitsHash, 'exitsHashedOtherwise', `exitsHash was computed differently; it is ${EXITS_HASH}`)
  yield withExitsHash(zeroHash, 'exitsNotHashed', `exitsHash was signed as zero; it is ${EXITS_HASH}`)
  yield {
    mistake: 'exitsNotHashed',
    problem: `the exits themselves were signed; the message has their hash, ${EXITS_HASH}`,
    digest: hashTypedData({
      domain,
      types: {
        [primaryType]: signingTypes[primaryType].map(field =>
          field.name === 'exitsHash' ? { name: 'exits', type: 'ExitRule[]' } : field,
        ),
        ExitRule: ruleComponents,
      },
      primaryType,
      message: { ...message, exits },
    }),
  }
}

function otherOrders(exits: readonly ExitRule[]): (readonly ExitRule[])[] {
  const byTrigger = exits.toSorted((a, b) => (a.triggerBps < b.triggerBps ? -1 : 1))
  const takeProfitsFirst = exits.toSorted((a, b) => b.triggerType - a.triggerType)
  return [exits.toReversed(), byTrigger, byTrigger.toReversed(), takeProfitsFirst, takeProfitsFirst.toReversed()]
}

const { StopLoss, TakeProfit } = TriggerType
const magnitude = (value: bigint) => (value < 0n ? -value : value)

const ruleChanges: { change: (rule: ExitRule) => ExitRule; mistake: string }[] = [
  {
    change: rule => ({ ...rule, triggerType: rule.triggerType === StopLoss ? TakeProfit : StopLoss }),
    mistake: 'with triggerType 0 and 1 exchanged: 0 is StopLoss',
  },
  {
    change: rule => ({ ...rule, triggerType: StopLoss }),
    mistake: 'all as StopLoss: a positive triggerBps is a TakeProfit, type 1',
  },
  {
    change: rule => ({ ...rule, triggerType: TakeProfit }),
    mistake: 'all as TakeProfit: a negative triggerBps is a StopLoss, type 0',
  },
  {
    change: rule => ({ ...rule, triggerBps: magnitude(rule.triggerBps) }),
    mistake: 'without their sign: the triggerBps of a StopLoss is negative',
  },
  {
    change: rule => ({ ...rule, triggerBps: magnitude(rule.triggerBps), triggerType: TakeProfit }),
    mistake: 'as TakeProfits without their sign: a StopLoss has type 0 and a negative triggerBps',
  },
]

/** Hashes the rules in the ways that are common elsewhere: packed, as tuples, as EIP-712 structs, or concatenated. */
function otherHashes(exits: readonly ExitRule[]): Hex[] {
  const valuesOf = ({ triggerType, triggerBps, exitBps }: ExitRule) => [triggerType, triggerBps, exitBps] as const
  const hashList = (hashes: readonly Hex[]) => keccak256(encodeAbiParameters([{ type: 'bytes32[]' }], [hashes]))
  const ruleHashes = exits.map(rule => keccak256(encodeAbiParameters(ruleComponents, valuesOf(rule))))
  const packedHashes = exits.map(rule => keccak256(encodePacked(['uint8', 'int256', 'uint16'], valuesOf(rule))))
  const structHashes = exits.map(rule =>
    keccak256(encodeAbiParameters([{ type: 'bytes32' }, ...ruleComponents], [RULE_TYPEHASH, ...valuesOf(rule)])),
  )
  const hashes = [
    keccak256(concat(ruleHashes)),
    keccak256(encodeAbiParameters([{ type: 'tuple[]', components: ruleComponents }], [exits])),
    hashList(packedHashes),
    keccak256(concat(packedHashes)),
    hashList(structHashes),
    keccak256(concat(structHashes)),
  ]
  const [onlyHash] = ruleHashes
  if (ruleHashes.length === 1 && onlyHash !== undefined) hashes.push(onlyHash)
  return hashes
}
