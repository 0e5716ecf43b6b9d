import {
  type AbiParameter,
  type AbiParameterToPrimitiveType,
  decodeAbiParameters,
  type Hex,
  toFunctionSelector,
} from 'viem'
import { formatAbiItem } from 'viem/utils'
import { agentRegistryAbi } from '../../../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../../../contracts-abi/allocation-manager.ts'
import { feeManagerAbi } from '../../../contracts-abi/fee-manager.ts'
import { mandateVaultAbi } from '../../../contracts-abi/mandate-vault.ts'
import { orderBookAbi } from '../../../contracts-abi/order-book.ts'
import { ownerControlsAbi } from '../../../contracts-abi/owner-controls.ts'
import { positionManagerAbi } from '../../../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../../../contracts-abi/price-oracle.ts'
import { promotionCriteriaAbi } from '../../../contracts-abi/promotion-criteria.ts'
import { tradePolicyAbi } from '../../../contracts-abi/trade-policy.ts'
import { tradeRouterAbi } from '../../../contracts-abi/trade-router.ts'
import { uniswapV3SwapAdapterAbi } from '../../../contracts-abi/uniswap-v3-swap-adapter.ts'

/** Every contract that a relayed call can run through. */
export const contractAbis = [
  tradeRouterAbi,
  positionManagerAbi,
  mandateVaultAbi,
  allocationManagerAbi,
  priceOracleAbi,
  uniswapV3SwapAdapterAbi,
  agentRegistryAbi,
  feeManagerAbi,
  tradePolicyAbi,
  promotionCriteriaAbi,
  ownerControlsAbi,
  orderBookAbi,
] as const
type ContractErrorItem = Extract<(typeof contractAbis)[number][number], { type: 'error' }>
export type ErrorName = ContractErrorItem['name']

/** The arguments of a contract error by their names in the ABI; integers of every size are bigints. */
export type ErrorFacts<Name extends ErrorName> = {
  [input in Extract<ContractErrorItem, { name: Name }>['inputs'][number] as input['name']]: WithBigints<
    AbiParameterToPrimitiveType<input>
  >
}
type WithBigints<Value> = Value extends number ? bigint : Value

/** A decoded contract error. */
export type ContractError = { [Name in ErrorName]: { name: Name; facts: ErrorFacts<Name> } }[ErrorName]

/** The wire code of a contract error: its name in SCREAMING_SNAKE case. */
export type CodeOfError<Name extends string, Previous extends string = ''> = Name extends `${infer Letter}${infer Rest}`
  ? `${StartsWord<Previous, Letter, Rest> extends true ? '_' : ''}${Uppercase<Letter>}${CodeOfError<Rest, Letter>}`
  : ''
/** Whether a capital follows a small letter or a digit, or another capital and is followed by a small letter. */
type StartsWord<Previous extends string, Letter extends string, Rest extends string> =
  IsCapital<Letter> extends true
    ? Previous extends ''
      ? false
      : IsCapital<Previous> extends true
        ? Rest extends `${infer Next}${string}`
          ? IsSmall<Next>
          : false
        : true
    : false
type IsCapital<Letter extends string> = Letter extends Lowercase<Letter> ? false : true
type IsSmall<Letter extends string> = Letter extends Uppercase<Letter> ? false : true

export type ContractErrorCode = CodeOfError<ErrorName>

const errorItems = new Map<string, ContractErrorItem>(
  contractAbis.flatMap(abi => abi.flatMap(item => (item.type === 'error' ? [[item.name, item]] : []))),
)

/** The names of all contract errors. */
export const errorNames = [...errorItems.keys()] as ErrorName[]

/** Returns the wire code of a contract error. */
export const codeOfError = <Name extends ErrorName>(name: Name): CodeOfError<Name> =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .toUpperCase() as CodeOfError<Name>

let itemsBySelector: Map<string, ContractErrorItem> | undefined

/** viem's decodeErrorResult hashes the signature of every error at each call. Here that happens once. */
function itemOf(selector: string): ContractErrorItem | undefined {
  itemsBySelector ??= new Map([...errorItems.values()].map(item => [toFunctionSelector(formatAbiItem(item)), item]))
  return itemsBySelector.get(selector)
}

const SELECTOR_LENGTH = '0x12345678'.length

/** Decodes revert data; undefined if it is not an error of these contracts. */
export function decodeRevert(data: Hex = '0x'): ContractError | undefined {
  const item = itemOf(data.slice(0, SELECTOR_LENGTH))
  if (item === undefined) return undefined
  const inputs: readonly AbiParameter[] = item.inputs
  try {
    const args = inputs.length === 0 ? [] : decodeAbiParameters(inputs, `0x${data.slice(SELECTOR_LENGTH)}`)
    const facts = inputs.map(({ name = '' }, index) => [name, withBigint(args[index])])
    return { name: item.name, facts: Object.fromEntries(facts) } as ContractError
  } catch {
    return undefined
  }
}

const withBigint = (value: unknown) => (typeof value === 'number' ? BigInt(value) : value)
