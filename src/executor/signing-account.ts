import {
  type Address,
  type Hex,
  isAddressEqual,
  keccak256,
  serializeTransaction,
  type TransactionSerializableEIP1559,
} from 'viem'
import { signHash } from '../secp256k1/sign-and-recover.ts'
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
  return {
    address,
    async sign({ nonce, gas, fees, call }) {
      const transaction: TransactionSerializableEIP1559 = {
        type: 'eip1559',
        chainId,
        nonce,
        gas: BigInt(gas),
        maxFeePerGas: fees.maxFeePerGas,
        maxPriorityFeePerGas: fees.maxPriorityFeePerGas,
        to: call.to,
        data: call.data,
        value: 0n,
      }
      const signature = signHash(keccak256(serializeTransaction(transaction)), privateKey)
      const raw = serializeTransaction(transaction, signature)
      return { raw, hash: keccak256(raw) }
    },
  }
}

const keysOf = (env: Partial<Record<string, unknown>>): Hex[] =>
  KEY_VARIABLES.flatMap(name => (typeof env[name] === 'string' ? env[name].split(',') : []))
    .map(key => key.trim())
    .filter((key): key is Hex => /^0x[0-9a-fA-F]{64}$/.test(key))
