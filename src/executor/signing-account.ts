import {
  type Address,
  bytesToHex,
  concatBytes,
  fromRlp,
  getAddress,
  type Hex,
  hexToBytes,
  isAddressEqual,
  numberToHex,
  toRlp,
} from 'viem'
import type { TransactionFees } from '../chain/transaction-fees.ts'
import type { Config } from '../config/config.ts'
import { keccak256 } from '../crypto/keccak256.ts'
import { addressOfPrivateKey, secp256k1 } from '../crypto/secp256k1.ts'
import type { Call } from './relay-types.ts'

/** The variables that hold keys, each with one key or several separated by commas. */
const KEY_VARIABLES = [
  'EXECUTOR_PRIVATE_KEY',
  'RELAYER_PRIVATE_KEY',
  'ORACLE_UPDATER_PRIVATE_KEY',
  'KEEPER_PRIVATE_KEY',
  'REPORTER_PRIVATE_KEY',
]

type RlpFields = readonly (Uint8Array | readonly Uint8Array[])[]

const NOTHING = new Uint8Array()

/** Encodes an EIP-1559 transaction. */
const encode = (fields: RlpFields): Uint8Array => concatBytes([Uint8Array.of(2), toRlp(fields, 'bytes')])

/** Returns the bytes of a number without leading zeros. */
const quantity = (value: number | bigint): Uint8Array =>
  BigInt(value) === 0n ? NOTHING : hexToBytes(numberToHex(value))

const withoutLeadingZeros = (bytes: Uint8Array): Uint8Array => bytes.subarray(bytes.findIndex(byte => byte !== 0))

/** Returns the fees of a transaction that an account here signed. */
export function feesOf(raw: Hex): TransactionFees {
  const [, , priorityFee, maxFee] = fromRlp(`0x${raw.slice(4)}`)
  const numberOf = (field: unknown) => (field === '0x' ? 0n : BigInt(`${field}`))
  return { maxPriorityFeePerGas: numberOf(priorityFee), maxFeePerGas: numberOf(maxFee) }
}

/** Returns the call of a signed transaction. */
export function callOf(raw: Hex): Call {
  const [, , , , , to, , data] = fromRlp(`0x${raw.slice(4)}`)
  return { to: getAddress(`${to}`), data: `${data}` as Hex }
}

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
      const fields = [
        quantity(chainId),
        quantity(nonce),
        quantity(fees.maxPriorityFeePerGas),
        quantity(fees.maxFeePerGas),
        quantity(gas),
        hexToBytes(call.to),
        NOTHING, // value
        hexToBytes(call.data),
        [], // access list
      ]
      const { signature, yParity } = secp256k1().sign(keccak256(encode(fields)), key)
      const rAndS = [signature.subarray(0, 32), signature.subarray(32)].map(withoutLeadingZeros)
      const raw = encode([...fields, quantity(yParity), ...rAndS])
      return { raw: bytesToHex(raw), hash: bytesToHex(keccak256(raw)) }
    },
  }
}

const keysOf = (env: Partial<Record<string, unknown>>): Hex[] =>
  KEY_VARIABLES.flatMap(name => (typeof env[name] === 'string' ? env[name].split(',') : []))
    .map(key => key.trim())
    .filter((key): key is Hex => /^0x[0-9a-fA-F]{64}$/.test(key))

const addresses = new Map<Hex, Address>()

/** Returns the address of a private key. */
export function addressOfKey(key: Hex): Address {
  const address = addresses.get(key) ?? addressOfPrivateKey(key)
  addresses.set(key, address)
  return address
}

type Keys = Pick<Config, 'executorKeys' | 'relayerKey' | 'oracleUpdaterKey' | 'keeper' | 'reporterKey'>

/**
 * The names of accounts in metrics, by address: their role, and for executors the place of their key in the variable.
 */
export function accountNames({
  executorKeys,
  relayerKey,
  oracleUpdaterKey,
  keeper,
  reporterKey,
}: Keys): Map<Address, string> {
  const named: [Hex | undefined, string][] = [
    [reporterKey, 'reporter'],
    [keeper?.key, 'keeper'],
    [oracleUpdaterKey, 'updater'],
    [relayerKey, 'relayer'],
    ...executorKeys.map((key, index): [Hex, string] => [key, `executor ${index + 1}`]),
  ]
  return new Map(named.flatMap(([key, name]) => (key ? [[addressOfKey(key), name] as const] : [])))
}
