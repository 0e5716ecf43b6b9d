import { type Abi, type ContractErrorArgs, type ContractErrorName, decodeErrorResult, type Hex } from 'viem'
import { agentLedgerAbi } from '../../../contracts-abi/agent-ledger.ts'
import { agentRegistryAbi } from '../../../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../../../contracts-abi/allocation-manager.ts'
import { feeManagerAbi } from '../../../contracts-abi/fee-manager.ts'
import { mandateVaultAbi } from '../../../contracts-abi/mandate-vault.ts'
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
  agentLedgerAbi,
  promotionCriteriaAbi,
  ownerControlsAbi,
] as const
export type ContractAbis = (typeof contractAbis)[number]
export type ErrorName = ContractErrorName<ContractAbis>

/** A decoded contract error; `args` are typed by its ABI. */
export type ContractError = {
  [name in ErrorName]: { name: name; args: ContractErrorArgs<ContractAbis, name> }
}[ErrorName]

const errorsAbi = contractAbis.flatMap(abi => [...abi] as Abi).filter(item => item.type === 'error')
const errorNames = new Set(errorsAbi.map(({ name }) => name))

/** Decodes revert data; undefined if it is not an error of these contracts. */
export function decodeRevert(data: Hex | undefined): ContractError | undefined {
  if (data === undefined || data === '0x') return undefined
  try {
    const { errorName, args = [] } = decodeErrorResult({ abi: errorsAbi, data })
    return errorNames.has(errorName) ? ({ name: errorName, args } as ContractError) : undefined
  } catch {
    return undefined
  }
}
