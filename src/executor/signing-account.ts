import { type Address, bytesToHex, concatBytes, type Hex, hexToBytes, isAddressEqual, numberToHex } from 'viem'
import { keccak256 } from '../keccak256/current-implementation.ts'
import { secp256k1 } from '../secp256k1/current-implementation.ts'
import { addressOfKey } from './address-of-key.ts'
import type { Call } from './relay-types.ts'
import type { TransactionFees } from './transaction-fees.ts'

/** The variables that hold keys, each with one key or several separated by commas. */
const KEY_VARIABLES = [
  'EXECUTOR_PRIVATE_KEY',
  'RELAYER_PRIVATE_KEY',
  'ORACLE_UPDATER_PRIVATE_KEY',
  'KEEPER_PRIVATE_KEY',
  'REPORTER_PRIVATE_KEY',
]

const NOTHING = new Uint8Array()
const EMPTY_LIST = Uint8Array.of(0xc0)

/** Returns the bytes of a number without leading zeros. */
const quantity = (value: number | bigint): Uint8Array =>
  BigInt(value) === 0n ? NOTHING : hexToBytes(numberToHex(value))

const withoutLeadingZeros = (bytes: Uint8Array): Uint8Array => bytes.subarray(bytes.findIndex(byte => byte !== 0))

/** Returns the RLP header of bytes (type 0x80) or of a list (0xc0). */
function rlpHeader(type: 0x80 | 0xc0, length: number): number[] {
  if (length < 56) return [type + length]
  const lengthBytes = quantity(length)
  return [type + 55 + lengthBytes.length, ...lengthBytes]
}

/** Encodes fields in RLP, without the header of their list. */
const encodeFields = (fields: readonly Uint8Array[]): Uint8Array[] =>
  fields.flatMap(bytes =>
    bytes.length === 1 && (bytes[0] ?? 0) < 0x80 ? [bytes] : [Uint8Array.from(rlpHeader(0x80, bytes.length)), bytes],
  )

/** Returns an EIP-1559 transaction with encoded fields. */
const transactionOf = (fields: Uint8Array): Uint8Array =>
  concatBytes([Uint8Array.of(2, ...rlpHeader(0xc0, fields.length)), fields])

/** An account that signs transactions. Its key does not leave the closure. */
export type SigningAccount = {
  address: Address
  sign(transaction: { nonce: number; gas: number; fees: TransactionFees; call: Call }): Promise<{ raw: Hex; hash: Hex }>
}

/** Returns the account of an address from the key in the environment. Throws if no variable contains its key. */
export function signingAccountOf(
  address: Address,
  chainId: number,
  env: Partial<Record<string, unknown>>,
): SigningAccount {
  const privateKey = keysOf(env).find(key => isAddressEqual(addressOfKey(key), address))
  if (privateKey === undefined) throw new Error(`No configured key belongs to the executor account ${address}`)
  const key = hexToBytes(privateKey)
  return {
    address,
    async sign({ nonce, gas, fees, call }) {
      const fields = encodeFields([
        quantity(chainId),
        quantity(nonce),
        quantity(fees.maxPriorityFeePerGas),
        quantity(fees.maxFeePerGas),
        quantity(gas),
        hexToBytes(call.to),
        NOTHING, // value
        hexToBytes(call.data),
      ])
      const unsigned = concatBytes([...fields, EMPTY_LIST]) // the access list
      const { signature, yParity } = secp256k1().sign(keccak256(transactionOf(unsigned)), key)
      const [r, s] = [withoutLeadingZeros(signature.subarray(0, 32)), withoutLeadingZeros(signature.subarray(32))]
      const raw = transactionOf(concatBytes([unsigned, ...encodeFields([quantity(yParity), r, s])]))
      return { raw: bytesToHex(raw), hash: bytesToHex(keccak256(raw)) }
    },
  }
}

const keysOf = (env: Partial<Record<string, unknown>>): Hex[] =>
  KEY_VARIABLES.flatMap(name => (typeof env[name] === 'string' ? env[name].split(',') : []))
    .map(key => key.trim())
    .filter((key): key is Hex => /^0x[0-9a-fA-F]{64}$/.test(key))
