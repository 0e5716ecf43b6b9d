import type { Address } from 'viem'
import { logEvent } from '../log.ts'
import type { ChainHead } from './chain-head.ts'

/**
 * Detects foreign transactions while the lane has none of its own pending: then only the account's nonce shows them. A
 * nonce above the lane's own counts once a later block shows it too.
 */
export function createIdleNonceWatch({
  address,
  onForeignTransactions,
}: {
  address: Address
  /** Called with the number of nonces that others have used, and the account's next nonce after them. */
  onForeignTransactions: (count: number, nextNonce: number) => void
}) {
  let suspicion: { from: number; to: number; atBlock: number } | undefined

  /** Compares a head with the lane's next nonce (0 if unknown), before the lane adopts the head's nonce. */
  function observe({ nonce, number }: ChainHead, nextNonce: number) {
    if (nextNonce === 0) suspicion = undefined // another chain
    if (suspicion && nonce < suspicion.to) suspicion = undefined // a reorg, or a node that was wrong
    if (suspicion && number > suspicion.atBlock) {
      const { from, to } = suspicion
      suspicion = undefined
      onForeignTransactions(to - from, to)
      logEvent('foreign transaction', { executor: address, nonce: from, count: to - from })
    }
    if (nextNonce > 0 && nonce > nextNonce)
      suspicion = { from: suspicion?.from ?? nextNonce, to: nonce, atBlock: number }
  }

  return { observe }
}
