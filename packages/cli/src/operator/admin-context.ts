import type { Address } from 'viem'
import { timelockAbi } from '../../../../contracts-abi/timelock.ts'
import { discoverContracts } from '../../../../src/doctor/read-deployment-facts.ts'
import { Failure } from '../failure.ts'
import type { AddressBook } from './admin-call.ts'
import { nodeMessage, type OperatedDeployment, openDeployment } from './connect.ts'
import type { VariablesSource } from './variables.ts'

/** A deployment that an operator changes. `timelock` is its admin; undefined if the admin is an account. */
export type AdminContext = OperatedDeployment & { book: AddressBook; timelock: Address | undefined }

/** Opens a deployment for changes. Throws `WRONG_CHAIN` and `NODE_UNREACHABLE`. */
export async function openAdmin(source: VariablesSource): Promise<AdminContext> {
  const deployment = openDeployment(source)
  const { chain, client } = deployment
  const chainId = await client.getChainId().catch(error => {
    throw new Failure('unavailable', `The node cannot be reached: ${nodeMessage(error)}`, {
      code: 'NODE_UNREACHABLE',
      remedy: 'Correct RPC_URL, or pass --rpc.',
    })
  })
  if (chainId !== chain.id)
    throw new Failure('mismatch', `The node serves chain ${chainId}, the deployment is on ${chain.id}.`, {
      code: 'WRONG_CHAIN',
      remedy: 'Pass --rpc with a node of that chain.',
    })
  const { Timelock, ...contracts } = await discoverContracts(chain, deployment.contracts)
  const hasDelay =
    Timelock !== undefined &&
    (await client.readContract({ address: Timelock, abi: timelockAbi, functionName: 'getMinDelay' }).then(
      () => true,
      () => false,
    ))
  const named = Object.entries({ ...contracts, ...(hasDelay && { Timelock }) }).filter(
    (entry): entry is [string, Address] => entry[1] !== undefined,
  )
  return {
    ...deployment,
    book: { contracts: Object.fromEntries(named), vaults: chain.vaults, tokens: chain.tokens },
    timelock: hasDelay ? Timelock : undefined,
  }
}

/** Returns the address of a vault by its slug. Throws `VAULT_UNKNOWN`. */
export function vaultNamed({ vaults }: AddressBook, slug: string): Address {
  const address = vaults[slug]
  if (address) return address
  throw new Failure('usage', `There is no vault ${slug}; there are ${Object.keys(vaults).join(', ')}.`, {
    code: 'VAULT_UNKNOWN',
    remedy: 'Pass one of these slugs.',
  })
}
