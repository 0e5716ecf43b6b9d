import { useCallback, useEffect, useState } from 'preact/hooks'
import type { Schema } from '../../data/client.ts'
import { changes } from '../../data/live.ts'
import { createReadLoop } from '../../data/read-loop.ts'
import { useStore } from '../../data/store.ts'
import { useDeployment } from '../../parts/deployment.tsx'
import { shownPricesOf } from '../../wallet/newest-prices.ts'
import type { Connected } from '../../wallet/provider.ts'
import { readNumber } from '../../wallet/vault-calls.ts'
import { connected } from '../../wallet/wallets.ts'

/**
 * What an account has in a vault: amounts are base units of USDC or of shares. `ready` is the wallet they belong to.
 */
export type HoldingsState = {
  figures?: {
    usdc: bigint
    allowance: bigint
    shares: bigint
    lockedShares: bigint
    /** What all shares would bring now, after the fee. */
    worth: bigint
    maxRedeem: bigint
    maxWithdraw: bigint
  }
  problem?: string
  /** The wallet, while the figures are its own and it is on the chain of the vault. */
  ready?: Connected
  reload(): void
}

const POLL_MS = 4_000

/**
 * Reads the holdings of the wallet's account through the wallet, again every few seconds and after a transaction of the
 * page's own.
 */
export function useHoldings({ contractAddress, asset }: Schema['Vault']): HoldingsState {
  const wallet = useStore(connected)
  const { chainId } = useDeployment()
  const isOnChain = wallet !== undefined && wallet.chainId === chainId
  const [state, setState] = useState<Pick<HoldingsState, 'figures' | 'problem'> & { of?: Connected }>({})
  const [version, setVersion] = useState(0)

  useEffect(() => {
    if (wallet === undefined || !isOnChain) {
      setState({})
      return
    }
    const current = wallet
    const { address } = current
    async function readFigures() {
      const bring = await shownPricesOf(current, contractAddress)
      const ofVault = (name: Parameters<typeof readNumber>[2]) =>
        readNumber(current, contractAddress, name, [address], bring)
      const [usdc, allowance, shares, lockedShares, maxRedeem, maxWithdraw] = await Promise.all([
        readNumber(current, asset, 'balanceOf', [address]),
        readNumber(current, asset, 'allowance', [address, contractAddress]),
        ofVault('balanceOf'),
        ofVault('lockedShares'),
        ofVault('maxRedeem'),
        ofVault('maxWithdraw'),
      ])
      const worth = shares === 0n ? 0n : await readNumber(current, contractAddress, 'previewRedeem', [shares], bring)
      return { usdc, allowance, shares, lockedShares, worth, maxRedeem, maxWithdraw }
    }
    const { request, stop } = createReadLoop(
      () => readFigures().catch(() => undefined),
      figures =>
        setState(previous =>
          figures
            ? { of: wallet, figures }
            : {
                ...(previous.of === wallet && previous),
                of: wallet,
                problem: 'The wallet could not read the vault. Check that it is on the right chain.',
              },
        ),
    )
    request()
    const timer = setInterval(request, POLL_MS)
    const unsubscribe = changes.subscribe(batch => batch.includes('everything') && request())
    return () => {
      stop()
      clearInterval(timer)
      unsubscribe()
    }
  }, [wallet, isOnChain, contractAddress, asset, version])

  const reload = useCallback(() => setVersion(current => current + 1), [])
  if (wallet !== undefined && chainId !== undefined && !isOnChain)
    return { problem: `The wallet is on chain ${wallet.chainId}, the vault on chain ${chainId}.`, reload }
  // The figures of another account or chain are not shown until they are read again.
  if (!isOnChain || state.of !== wallet) return { reload }
  const { figures, problem } = state
  return { ...(figures && { figures, ready: wallet }), ...(problem !== undefined && { problem }), reload }
}
