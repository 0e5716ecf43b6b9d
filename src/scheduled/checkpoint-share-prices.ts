import { encodeFunctionData, keccak256, stringToBytes } from 'viem'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { priceNeedOf } from '../chain/carried-prices.ts'
import { mandateVault } from '../chain/contracts.ts'
import { provenTokensOf } from '../chain/newest-prices.ts'
import { call, optional, readTree } from '../chain/read-tree.ts'
import { readVaultsAndTokens } from '../chain/read-vaults-and-tokens.ts'
import { nowAt } from '../clock.ts'
import type { Context } from '../context.ts'
import { logEvent } from '../log.ts'

const HOUR_SECONDS = 3_600n
/** How old a vault's anchor is when it is moved on. */
const MAX_ANCHOR_AGE_SECONDS = 23n * HOUR_SECONDS
/** How long after its cooldown the vault would accept a jump, with a margin. Only the operator accepts one. */
const JUMP_EXPIRY_SECONDS = 2n * HOUR_SECONDS
const DEADLINE_SECONDS = 600n

type Breaker = { newer: bigint; setAt: bigint; jumpedTo: bigint; acceptedAt: bigint; isOpen: boolean }

/**
 * Returns whether a vault's share price is to be recorded now. An open breaker, or a jump that could be accepted, is
 * the operator's.
 */
export const isCheckpointDue = (
  { newer, setAt, jumpedTo, acceptedAt, isOpen }: Breaker,
  moveWindow: bigint,
  now: bigint,
): boolean => {
  const maxAge = moveWindow / 2n > MAX_ANCHOR_AGE_SECONDS ? moveWindow / 2n : MAX_ANCHOR_AGE_SECONDS
  const isJumpOver = jumpedTo === 0n || now > acceptedAt + JUMP_EXPIRY_SECONDS
  return newer > 0n && now >= setAt + maxAge && !isOpen && isJumpOver
}

/**
 * Records the share price of each vault once a day, from the updater's account: without it, a slow gain later looks
 * like a jump. An attempt that fails is logged, and made again in the next hour. `timeOf` returns the present time in
 * Unix seconds.
 */
export async function checkpointSharePrices(context: Context, timeOf = nowAt): Promise<void> {
  if (context.config.oracleUpdaterKey === undefined) return
  const { chain, updater } = context
  const { block, registered } = await readVaultsAndTokens(chain)
  const { values } = await readTree(
    chain,
    registered.vaults.map(({ address }) => ({
      address,
      breaker: optional(call(mandateVault(address), 'sharePriceBreaker', [])),
      policy: optional(call(mandateVault(address), 'liquidityPolicy', [])),
    })),
  )
  const now = timeOf(block)
  for (const { address, breaker, policy } of values) {
    if (!breaker || !policy || !isCheckpointDue(breaker, BigInt(policy.moveWindow), now)) continue
    const hour = now / HOUR_SECONDS
    const outcome = await updater.relay({
      // One attempt an hour at most.
      digest: keccak256(stringToBytes(`checkpoint of a share price ${chain.id} ${address} ${hour}`)),
      kind: 'checkpoint',
      by: { as: 'service', task: `checkpoint:${address}` },
      groupNonce: `${hour}`,
      deadline: now + DEADLINE_SECONDS,
      call: { to: address, data: encodeFunctionData({ abi: mandateVaultAbi, functionName: 'checkpointSharePrice' }) },
      prices: priceNeedOf(chain, await provenTokensOf(chain, address)),
    })
    if (outcome.state !== 'mined') logEvent('share price not recorded', { state: outcome.state, vault: address })
  }
}
