import { type Address, BaseError, ContractFunctionRevertedError, type PublicClient, zeroHash } from 'viem'
import { type AddressBook, type AdminCall, errorAbi } from './admin-call.ts'
import { nodeMessage } from './connect.ts'
import { show } from './describe-call.ts'

/** What a call would do now: succeed, or revert with an error of a contract. */
export type Simulation = { ok: true } | { ok: false; error: string | undefined; args: readonly unknown[]; text: string }

/** Simulates a call from an account on the newest block. Throws if the node cannot be reached. */
export async function simulate(
  client: PublicClient,
  book: AddressBook,
  account: Address,
  call: AdminCall,
): Promise<Simulation> {
  try {
    await client.simulateContract({ ...call, abi: [...call.abi, ...errorAbi], account })
    return { ok: true }
  } catch (error) {
    const reverted =
      error instanceof BaseError ? error.walk(cause => cause instanceof ContractFunctionRevertedError) : null
    if (!(reverted instanceof ContractFunctionRevertedError)) throw error
    const { errorName, args = [] } = reverted.data ?? {}
    const text = errorName
      ? `${errorName}(${args.map(value => show(book, value)).join(', ')})`
      : (reverted.reason ?? nodeMessage(reverted))
    return { ok: false, error: errorName, args, text }
  }
}

/** Returns the role that a call needs and its sender lacks; undefined if it failed for another reason. */
export const missingRole = (simulation: Simulation): unknown =>
  !simulation.ok && simulation.error === 'AccessControlUnauthorizedAccount' ? simulation.args[1] : undefined

/** Whether only the admin may make the call. */
export const needsAdmin = (simulation: Simulation): boolean =>
  !simulation.ok && (missingRole(simulation) === zeroHash || simulation.error === 'TimelockUnauthorizedCaller')
