import { type Abi, type Address, decodeFunctionData, encodeFunctionData, erc20Abi, getAddress, type Hex } from 'viem'
import { agentRegistryAbi } from '../../../../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../../../../contracts-abi/allocation-manager.ts'
import { feeManagerAbi } from '../../../../contracts-abi/fee-manager.ts'
import { mandateVaultAbi } from '../../../../contracts-abi/mandate-vault.ts'
import { positionManagerAbi } from '../../../../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../../../../contracts-abi/price-oracle.ts'
import { timelockAbi } from '../../../../contracts-abi/timelock.ts'
import { tokenRegistryAbi } from '../../../../contracts-abi/token-registry.ts'
import { tradePolicyAbi } from '../../../../contracts-abi/trade-policy.ts'
import { tradeRouterAbi } from '../../../../contracts-abi/trade-router.ts'
import { uniswapV3SwapAdapterAbi } from '../../../../contracts-abi/uniswap-v3-swap-adapter.ts'
import { vaultTrackRegistryAbi } from '../../../../contracts-abi/vault-track-registry.ts'
import { Failure } from '../failure.ts'

/** A call of a contract that the operator makes, or has the timelock make. */
export type AdminCall = {
  /** The name of the contract, or the slug of the vault. */
  contract: string
  address: Address
  abi: Abi
  functionName: string
  args: readonly unknown[]
}

/** The addresses of a deployment, by the names that an operator uses. */
export type AddressBook = {
  contracts: Record<string, Address>
  vaults: Record<string, Address>
  tokens: Record<string, Address>
}

const abis: Record<string, Abi> = {
  AgentRegistry: agentRegistryAbi,
  AllocationManager: allocationManagerAbi,
  FeeManager: feeManagerAbi,
  PositionManager: positionManagerAbi,
  PriceOracle: priceOracleAbi,
  SwapAdapter: uniswapV3SwapAdapterAbi,
  Timelock: timelockAbi,
  TokenRegistry: tokenRegistryAbi,
  TradePolicy: tradePolicyAbi,
  TradeRouter: tradeRouterAbi,
  USDC: erc20Abi,
  VaultTrackRegistry: vaultTrackRegistryAbi,
}

/** The errors of every contract: one that calls another passes its errors on. */
export const errorAbi: Abi = [...Object.values(abis), mandateVaultAbi].flatMap(abi =>
  abi.filter(({ type }) => type === 'error'),
)

/** Returns a call of a named contract or vault. Throws `CONTRACT_UNKNOWN`. */
export function adminCall(
  book: AddressBook,
  contract: string,
  functionName: string,
  args: readonly unknown[],
  at?: Address,
): AdminCall {
  const address = at ?? book.contracts[contract] ?? book.vaults[contract]
  const abi = book.vaults[contract] ? mandateVaultAbi : abis[contract]
  if (address && abi) return { contract, address, abi, functionName, args }
  throw new Failure('usage', `There is no contract or vault ${contract}; there are ${knownNames(book)}.`, {
    code: 'CONTRACT_UNKNOWN',
    remedy: 'Use one of these names, or pass the variables that name it.',
  })
}

/**
 * Parses `Contract.function(…)` with JSON arguments, in which names of contracts, vaults and tokens stand for their
 * addresses and digits in quotes for large numbers. Throws `CALL_INVALID`.
 */
export function parseCall(book: AddressBook, text: string): AdminCall {
  const [, contract = '', functionName = '', json = ''] = /^([\w-]+)\.(\w+)\((.*)\)$/s.exec(text) ?? []
  if (contract === '') throw callInvalid(text, 'is not of the form Contract.function(arguments)')
  const call = adminCall(book, contract, functionName, parseArguments(book, text, json))
  try {
    encode(call)
  } catch (error) {
    throw callInvalid(text, `does not fit the contract: ${(error as { shortMessage?: string }).shortMessage ?? error}`)
  }
  return call
}

function parseArguments({ contracts, vaults, tokens }: AddressBook, text: string, json: string): unknown[] {
  const named = { ...contracts, ...vaults, ...tokens }
  try {
    return JSON.parse(`[${json}]`, (_, value) => {
      if (typeof value === 'number' && !Number.isSafeInteger(value)) throw callInvalid(text, INEXACT)
      if (typeof value !== 'string') return value
      return /^-?[0-9]+$/.test(value) ? BigInt(value) : (named[value] ?? value)
    })
  } catch (error) {
    throw error instanceof Failure ? error : callInvalid(text, 'has arguments that are not JSON')
  }
}

const INEXACT = 'has a number that is not whole or too large to be exact: write its digits in quotes'

const callInvalid = (text: string, problem: string) =>
  new Failure('usage', `${text} ${problem.split('\n').join(' ')}.`, {
    code: 'CALL_INVALID',
    remedy: `Write it as in 'TradeRouter.setKeeperBounty(7, "1000000")'.`,
  })

export const encode = ({ abi, functionName, args }: AdminCall): Hex => encodeFunctionData({ abi, functionName, args })

/** Returns the call that data makes at an address; undefined if the contract or the function is unknown. */
export function decodeCall(book: AddressBook, address: Address, data: Hex): AdminCall | undefined {
  const entry = Object.entries({ ...book.contracts, ...book.vaults }).find(
    ([, known]) => getAddress(known) === getAddress(address),
  )
  const abi = entry && (book.vaults[entry[0]] ? mandateVaultAbi : abis[entry[0]])
  if (!entry || !abi) return undefined
  try {
    const { functionName, args = [] } = decodeFunctionData({ abi, data })
    return { contract: entry[0], address, abi, functionName, args }
  } catch {
    return undefined
  }
}

const knownNames = ({ contracts, vaults }: AddressBook) =>
  [...Object.keys(contracts).filter(name => name in abis), ...Object.keys(vaults)].join(', ')
