import { encodeErrorResult, type Hex, parseAbi } from 'viem'

/** Why a token refuses a transfer, as the issuers of dollars put it. */
export const transferRefusals = {
  accountFrozen: 'its issuer has frozen one of the accounts',
  transfersPaused: 'its issuer has paused all transfers',
  transferFailed: 'a pool could not pay it out, as while its issuer blocks the pool or the vault',
} as const
export type TransferRefusal = keyof typeof transferRefusals

const abi = parseAbi(['error Error(string)', 'error AddressFrozen()', 'error ContractPaused()'])
const textOf = (text: string) => encodeErrorResult({ abi, errorName: 'Error', args: [text] })

/** The revert data of Paxos' dollars, of Circle's, and of Uniswap's pools. */
const reverts = new Map<Hex, TransferRefusal>([
  [encodeErrorResult({ abi, errorName: 'AddressFrozen' }), 'accountFrozen'],
  [encodeErrorResult({ abi, errorName: 'ContractPaused' }), 'transfersPaused'],
  [textOf('Blacklistable: account is blacklisted'), 'accountFrozen'],
  [textOf('Pausable: paused'), 'transfersPaused'],
  [textOf('TF'), 'transferFailed'],
])

/** Returns why a transfer was refused, from a call's revert data; undefined if it reverted for another reason. */
export const transferRefusalOf = (data: Hex | undefined): TransferRefusal | undefined =>
  data && reverts.get(data.toLowerCase() as Hex)
