import { type Address, type Hex, isAddressEqual, keccak256 } from 'viem'
import { privateKeyToAddress, signTransaction } from 'viem/accounts'
import type { Call } from './intent.ts'

/** The variables that hold keys, each one key or a comma list. */
const keyVariables = ['EXECUTOR_PRIVATE_KEY', 'RELAYER_PRIVATE_KEY', 'ORACLE_UPDATER_PRIVATE_KEY', 'KEEPER_PRIVATE_KEY']

export type Fees = { maxFeePerGas: bigint; maxPriorityFeePerGas: bigint }
type Signed = { raw: Hex; hash: Hex }

/** An executor account: it signs, and its key never leaves this closure. */
export type Account = {
  address: Address
  sign(transaction: { nonce: number; gas: bigint; fees: Fees; call: Call }): Promise<Signed>
}

/** The account of an address whose key the environment holds; throws when it holds none. */
export function accountOf(address: Address, chainId: number, env: Partial<Record<string, unknown>>): Account {
  const privateKey = keysOf(env).find(key => isAddressEqual(privateKeyToAddress(key), address))
  if (privateKey === undefined) throw new Error(`No configured key belongs to the executor account ${address}`)
  return {
    address,
    async sign({ nonce, gas, fees, call }) {
      const raw = await signTransaction({
        privateKey,
        transaction: { type: 'eip1559', chainId, nonce, gas, ...fees, to: call.to, data: call.data, value: 0n },
      })
      return { raw, hash: keccak256(raw) }
    },
  }
}

const keysOf = (env: Partial<Record<string, unknown>>): Hex[] =>
  keyVariables
    .flatMap(name => (typeof env[name] === 'string' ? env[name].split(',') : []))
    .map(key => key.trim())
    .filter((key): key is Hex => /^0x[0-9a-fA-F]{64}$/.test(key))
