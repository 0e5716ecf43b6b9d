import { deployedRoles, roleHash } from '@agent-trading-service/protocol/roles-of-powers'
import { type Address, decodeFunctionData, type Hex } from 'viem'
import { agentRegistryAbi } from '../../../../contracts-abi/agent-registry.ts'
import { timelockAbi } from '../../../../contracts-abi/timelock.ts'
import { Failure } from '../failure.ts'
import { type AdminCall, encode } from './admin-call.ts'
import type { AdminContext } from './admin-context.ts'
import { type CallDescription, describeCall } from './describe-call.ts'
import { readRoleHistory } from './role-holders.ts'
import { missingRole, needsAdmin, type Simulation, simulate } from './simulate-call.ts'
import { callsOf, type Operation, operationOf, stepsOf } from './timelock.ts'

/** Calls that belong together: one after another, or as one operation of the timelock. */
export type CallGroup = { calls: readonly AdminCall[]; leastDelay?: bigint; salt?: Hex }

export type PlannedTransaction = { what: string; to: Address; data: Hex; gas: bigint | undefined }

/** What becomes of a group of calls: the transactions to send now, and why they may not be sent. */
export type GroupPlan = {
  route: 'direct' | 'timelock'
  calls: (CallDescription & { now: string })[]
  operation: Operation | undefined
  transactions: PlannedTransaction[]
  refusal: Failure | undefined
  /** Further notes, such as when an operation is due. */
  note: string | undefined
}

/** Plans a group of calls: what the sender may not do, and the timelock may, becomes an operation of the timelock. */
export async function planGroup(context: AdminContext, sender: Address, group: CallGroup): Promise<GroupPlan> {
  const { client, book, timelock } = context
  const [first] = group.calls
  if (first === undefined) throw new Failure('usage', 'There is nothing to do.', { code: 'NOTHING_TO_DO' })
  const own = await simulate(client, book, sender, first)
  const byTimelock = timelock && !own.ok ? await simulate(client, book, timelock, first) : undefined
  const usesTimelock = needsAdmin(own) || (missingRole(own) === undefined && byTimelock?.ok === true)
  if (timelock && !own.ok && usesTimelock) return planOperation(context, sender, group)
  return planDirect(context, sender, group, own)
}

async function planDirect(
  context: AdminContext,
  sender: Address,
  { calls }: CallGroup,
  first: Simulation,
): Promise<GroupPlan> {
  const { client } = context
  const described = await describeCalls(context, sender, calls)
  const transactions = await Promise.all(
    calls.map(async (call, index) => {
      const data = encode(call)
      const gas = await client.estimateGas({ account: sender, to: call.address, data }).catch(() => undefined)
      return { what: described[index]?.sentence ?? call.functionName, to: call.address, data, gas }
    }),
  )
  const [call] = calls
  const refusal = first.ok || !call ? undefined : await refusalOf(context, sender, call, first)
  return { route: 'direct', calls: described, operation: undefined, transactions, refusal, note: undefined }
}

/** Plans the next step of the operation of the calls: scheduling or executing it. */
async function planOperation(context: AdminContext, sender: Address, group: CallGroup): Promise<GroupPlan> {
  const { client, timelock } = context
  if (timelock === undefined) throw new Error('the deployment has no timelock')
  return planNextStep(context, sender, await operationOf(client, timelock, group.calls, group), group.calls)
}

/** Plans the next step of an operation that is known to the timelock or not. */
export async function planNextStep(
  context: AdminContext,
  sender: Address,
  operation: Operation,
  calls: readonly (AdminCall | undefined)[] = callsOf(context.book, operation),
): Promise<GroupPlan> {
  const described = await describeCalls(context, operation.timelock, calls)
  const plan = { route: 'timelock' as const, calls: described, operation }
  const { state, readyAt, delaySeconds } = operation
  if (state === 'done')
    return {
      ...plan,
      transactions: [],
      refusal: undefined,
      note: 'The operation is done. Pass another --salt to do the same again.',
    }
  if (state === 'waiting')
    return {
      ...plan,
      transactions: [],
      refusal: undefined,
      note: `The operation waits until ${timeOf(readyAt)}. Run the same command again then to execute it.`,
    }
  const step = state === 'ready' ? ('execute' as const) : ('schedule' as const)
  return {
    ...plan,
    ...(await planStep(context, sender, operation, step)),
    note:
      step === 'schedule' && delaySeconds > 0n
        ? `The timelock executes it no sooner than ${delaySeconds} seconds after it is scheduled. Run the same command again then.`
        : undefined,
  }
}

/** Plans one step of an operation, and why the sender may not take it. */
export async function planStep(
  context: AdminContext,
  sender: Address,
  operation: Operation,
  step: 'schedule' | 'execute' | 'cancel',
): Promise<Pick<GroupPlan, 'transactions' | 'refusal'>> {
  const { client, book } = context
  const { timelock } = operation
  const data = stepsOf(operation)[step]
  const { functionName, args = [] } = decodeFunctionData({ abi: timelockAbi, data })
  const call = { contract: 'Timelock', address: timelock, abi: timelockAbi, functionName, args }
  const simulation = await simulate(client, book, sender, call)
  const gas = simulation.ok ? await client.estimateGas({ account: sender, to: timelock, data }) : undefined
  return {
    transactions: [{ what: `${step} operation ${operation.id}`, to: timelock, data, gas }],
    refusal: simulation.ok ? undefined : await refusalOf(context, sender, call, simulation),
  }
}

/**
 * Describes calls and what each would do now. One that fails after another may depend on that, such as on an approval:
 * it is simulated again before it is sent.
 */
function describeCalls(
  { client, book }: AdminContext,
  account: Address,
  calls: readonly (AdminCall | undefined)[],
): Promise<GroupPlan['calls']> {
  return Promise.all(
    calls.map(async (call, index) => {
      if (call === undefined)
        return { call: 'unknown', sentence: 'A call of a contract that is not known', changes: [], now: 'unknown' }
      const [described, now] = await Promise.all([
        describeCall(client, book, call),
        simulate(client, book, account, call),
      ])
      if (now.ok) return { ...described, now: 'succeeds now' }
      return { ...described, now: index > 0 ? 'is checked after the call before it' : `fails now: ${now.text}` }
    }),
  )
}

/** Returns why a call may not be sent: a role that the sender lacks, with who has it, or the contract's error. */
async function refusalOf(
  context: AdminContext,
  sender: Address,
  call: AdminCall,
  simulation: Simulation & { ok: false },
): Promise<Failure> {
  const needed = missingRole(simulation)
  if (needsAdmin(simulation))
    return new Failure('refused', `Only the admin may call ${call.contract}.${call.functionName}; ${sender} is not.`, {
      code: 'NOT_ADMIN',
      remedy: `Use the key of the admin: ${await adminOf(context, call.address)}.`,
    })
  if (needed === undefined)
    return new Failure('refused', `${call.contract}.${call.functionName} would revert: ${simulation.text}.`, {
      code: simulation.error ?? 'REVERTED',
      remedy: remedies[simulation.error ?? ''] ?? 'Nothing was sent. Correct what the error names.',
    })
  const roles = deployedRoles(context.book)
  const role = roles.find(each => each.address === call.address && roleHash(each.role) === needed)
  if (role === undefined)
    return new Failure('refused', `${sender} lacks the role ${needed} of ${call.contract}.`, { code: 'ROLE_MISSING' })
  const holders = await holdersOf(context, role.contract, role.role)
  return new Failure('refused', `${sender} lacks ${role.role} of ${role.contract}, which ${holders} has.`, {
    code: 'ROLE_MISSING',
    remedy: `Use that key, or grant the role: ats admin grant ${role.power} ${sender}`,
    details: { contract: role.contract, role: role.role, power: role.power },
  })
}

const remedies: Record<string, string> = {
  DeviationTooLarge: 'Compare the price with a second source; the forcer posts it with --force.',
  AgentNotSuspended: 'Suspend the agent first: ats admin agent suspend <id>',
}

async function adminOf({ client }: AdminContext, address: Address): Promise<string> {
  return client
    .readContract({ address, abi: agentRegistryAbi, functionName: 'defaultAdmin' })
    .catch(() => 'nobody known')
}

async function holdersOf({ chain, client, book }: AdminContext, contract: string, role: string): Promise<string> {
  const head = await client.getBlockNumber()
  const history = await readRoleHistory(chain, book, head).catch(() => undefined)
  const accounts = history?.holders.filter(each => each.contract === contract && each.role === role)
  if (accounts === undefined) return 'another key'
  return accounts.map(({ account }) => account).join(' or ') || 'nobody'
}

const timeOf = (seconds: bigint | undefined) => new Date(Number(seconds ?? 0n) * 1_000).toISOString()
