import { gasLimitOf } from '@agent-trading-service/protocol/gas-limit'
import { type Address, createWalletClient, custom, type Hex } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import { Failure } from '../failure.ts'
import { decodeCall } from './admin-call.ts'
import type { AdminContext } from './admin-context.ts'
import { type CallGroup, type GroupPlan, planGroup, planNextStep } from './admin-plan.ts'
import { nodeMessage } from './connect.ts'
import { simulate } from './simulate-call.ts'

export type SentTransaction = { what: string; transactionHash: Hex; blockNumber: bigint; gasUsed: bigint }

/** Throws the first reason why a plan may not be sent. */
export function assertSendable(plans: readonly GroupPlan[]): void {
  for (const { refusal } of plans) if (refusal) throw refusal
}

/**
 * Sends the transactions of plans, one after another, and waits for each. An operation of a timelock without a delay is
 * executed at once. Throws when one would revert; those before it stay sent.
 */
export async function sendPlans(
  context: AdminContext,
  account: PrivateKeyAccount,
  plans: readonly GroupPlan[],
): Promise<SentTransaction[]> {
  const sent: SentTransaction[] = []
  for (const plan of plans) {
    await sendPlan(context, account, plan, sent)
    const { operation } = plan
    if (operation?.state !== 'not scheduled' || operation.delaySeconds > 0n || plan.transactions.length === 0) continue
    const scheduled = { ...operation, state: 'ready' as const }
    const next = await planNextStep(context, account.address, scheduled)
    assertSendable([next])
    await sendPlan(context, account, next, sent)
  }
  return sent
}

async function sendPlan(
  { client, book }: AdminContext,
  account: PrivateKeyAccount,
  { transactions }: GroupPlan,
  sent: SentTransaction[],
): Promise<void> {
  const wallet = createWalletClient({ account, chain: client.chain, transport: custom(client) })
  for (const { what, to, data } of transactions) {
    const call = decodeCall(book, to, data)
    const now = call && (await simulate(client, book, account.address, call))
    if (now && !now.ok) throw reverted(`${what} would revert: ${now.text}`, sent)
    const transactionHash = await client
      .estimateGas({ account, to, data })
      .then(gas => wallet.sendTransaction({ chain: client.chain ?? null, to, data, gas: gasLimitOf(gas) }))
      .catch(error => {
        throw reverted(`${what} was rejected: ${nodeMessage(error)}`, sent)
      })
    const { status, blockNumber, gasUsed } = await client.waitForTransactionReceipt({ hash: transactionHash })
    if (status !== 'success') throw reverted(`${what} reverted in ${transactionHash}`, sent)
    sent.push({ what, transactionHash, blockNumber, gasUsed })
  }
}

const reverted = (problem: string, sent: readonly SentTransaction[]) =>
  new Failure(
    'refused',
    `${problem}. ${sent.length === 0 ? 'Nothing was sent.' : `${sent.length} before it were sent.`}`,
    {
      code: 'REVERTED',
      details: { sent: sent.map(({ transactionHash }) => transactionHash) },
    },
  )

/** Plans groups of calls for a sender. */
export const planGroups = (
  context: AdminContext,
  sender: Address,
  groups: readonly CallGroup[],
): Promise<GroupPlan[]> => Promise.all(groups.map(group => planGroup(context, sender, group)))
