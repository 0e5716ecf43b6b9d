import { getAddress, type Hex } from 'viem'
import { z } from 'zod'
import { chargeBeforeReading, chargeSpent } from '../call.ts'
import type { Chain } from '../chain/configured-chain.ts'
import { refusalOfRevert } from '../chain/contract-error-refusals.ts'
import { findTransaction, type Transaction } from '../chain/find-transaction.ts'
import { readKnownAddresses } from '../chain/known-addresses.ts'
import type { Context } from '../context.ts'
import { refuse } from '../errors/refuse.ts'
import { describedCalls, describedEffects, presentCall, presentEffects } from '../resources/described-call.ts'
import { addressOut, digits, hashOut, txHash, unixSeconds } from '../resources/primitives.ts'
import { defineOperation } from './define-operation.ts'

const transactionStatus = z
  .object({
    transactionHash: hashOut,
    status: z.enum(['pending', 'success', 'reverted']).describe('pending: not in a block yet'),
    blockNumber: digits('Block that includes it').optional(),
    blockTimestamp: unixSeconds('Timestamp of that block').optional(),
    confirmations: digits('Blocks from its own to the newest, inclusive').optional(),
    from: addressOut,
    to: addressOut.nullable().describe('Null for a contract creation'),
    calls: describedCalls.optional(),
    effects: describedEffects.optional(),
    error: z
      .object({ code: z.string(), message: z.string() })
      .optional()
      .describe('The decoded contract error; only if reverted'),
    replacedBy: hashOut.optional().describe('The transaction that replaced this one, which stays pending'),
  })
  .meta({ id: 'TransactionStatus' })

/** Presents a transaction that is not in a block. */
const presentPending = ({
  hash,
  from,
  to,
  replacedBy,
}: Pick<Transaction, 'hash' | 'from' | 'to'> & { replacedBy?: Hex | undefined }): z.input<
  typeof transactionStatus
> => ({
  transactionHash: hash,
  status: 'pending',
  ...presentParties({ from, to }),
  ...(replacedBy !== undefined && { replacedBy }),
})

const presentParties = ({ from, to }: Pick<Transaction, 'from' | 'to'>) => ({
  from: getAddress(from),
  to: to && getAddress(to),
})

/** Presents a transaction that is in a block. */
function presentTransaction(
  { hash, from, to, revertData }: Transaction,
  block: NonNullable<Transaction['block']>,
): z.input<typeof transactionStatus> {
  const refusal = block.success ? undefined : refusalOfRevert(revertData)
  return {
    transactionHash: hash,
    status: block.success ? 'success' : 'reverted',
    blockNumber: `${block.number}`,
    blockTimestamp: `${block.timestamp}`,
    confirmations: `${block.confirmations}`,
    ...presentParties({ from, to }),
    ...(refusal && { error: { code: refusal.body.code, message: refusal.body.error } }),
  }
}

/** A read of something else makes the node execute about that much, or returns that many characters. */
const GAS_PER_READ = 1_000_000n
const CHARACTERS_PER_READ = 16 * 1024

/** Returns as how many further reads a transaction counts: its sender decides what reading it costs. */
const readsOf = ({ gasUsed, characters }: Transaction, { success }: NonNullable<Transaction['block']>): number =>
  Number(success ? 0n : gasUsed / GAS_PER_READ) + Math.floor(characters / CHARACTERS_PER_READ)

/** Says what a transaction asked of the deployment's contracts, and what came of it. */
async function describeTransaction(chain: Chain, { to, input, logs }: Transaction) {
  if (to === null || input === undefined || input === '0x') return {}
  const known = await readKnownAddresses(chain)
  return { calls: presentCall(to, input, known), effects: presentEffects(logs, known) }
}

export const getTransaction = defineOperation(
  {
    id: 'getTransaction',
    tool: {
      name: 'svc_get_transaction',
      description:
        'Tells whether a transaction is pending, succeeded or reverted, and why; follow replacedBy. Example: {"txHash":"0x…"}',
    },
    path: '/transactions/{txHash}',
    tag: 'Transactions',
    summary: 'Get the status of a transaction',
    description:
      'Tells whether a transaction is pending, succeeded or reverted, and why it reverted; of a call of this deployment also what it asked for and what came of it, in words. A transaction that the executor replaced stays pending and names its successor in `replacedBy`. A transaction that the executor signed is pending even while no node knows it.',
    params: z.object({ txHash }),
    output: transactionStatus,
    errors: [404, 502],
  },
  async ({ chain, journals }: Pick<Context, 'chain' | 'journals'>, { txHash }, call) => {
    const found = await findTransaction(chain, txHash)
    if (found?.block) {
      await chargeSpent(call, readsOf(found, found.block))
      return { ...presentTransaction(found, found.block), ...(await describeTransaction(chain, found)) }
    }
    await chargeBeforeReading(call, journals.lanes.ofTransactions - 1)
    const sent = await journals.findTransaction(txHash).catch(error => {
      throw refuse('EXECUTOR_UNREACHABLE', { txHash }, { cause: error })
    })
    if (found)
      return {
        ...presentPending({ ...found, replacedBy: sent?.replacedBy }),
        ...(await describeTransaction(chain, found)),
      }
    // A journalled transaction that can no longer be mined and has no successor is unknown to the caller.
    if (!sent?.isPending && sent?.replacedBy === undefined) throw refuse('TRANSACTION_NOT_FOUND', { txHash })
    return presentPending(sent)
  },
)
