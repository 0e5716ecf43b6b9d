import { useCallback, useEffect, useState } from 'preact/hooks'
import type { Schema } from '../../data/client.ts'
import { changes } from '../../data/live.ts'
import { useStore } from '../../data/store.ts'
import { readNumber } from '../../wallet/vault-calls.ts'
import { connected } from '../../wallet/wallets.ts'

/** What an account has in a vault: amounts are base units of USDC or of shares. */
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
  reload(): void
}

const POLL_MS = 4_000

/** Reads the holdings of the wallet's account through the wallet, again every few seconds and after each event. */
export function useHoldings({ contractAddress, asset }: Schema['Vault']): HoldingsState {
  const wallet = useStore(connected)
  const [state, setState] = useState<Omit<HoldingsState, 'reload'>>({})
  const [version, setVersion] = useState(0)

  useEffect(() => {
    if (wallet === undefined) {
      setState({})
      return
    }
    const { address } = wallet
    let isGone = false
    const ofVault = (name: Parameters<typeof readNumber>[2]) => readNumber(wallet, contractAddress, name, [address])
    async function load(current: NonNullable<typeof wallet>) {
      try {
        const [usdc, allowance, shares, lockedShares, maxRedeem, maxWithdraw] = await Promise.all([
          readNumber(current, asset, 'balanceOf', [address]),
          readNumber(current, asset, 'allowance', [address, contractAddress]),
          ofVault('balanceOf'),
          ofVault('lockedShares'),
          ofVault('maxRedeem'),
          ofVault('maxWithdraw'),
        ])
        const worth = shares === 0n ? 0n : await readNumber(current, contractAddress, 'previewRedeem', [shares])
        if (!isGone) setState({ figures: { usdc, allowance, shares, lockedShares, worth, maxRedeem, maxWithdraw } })
      } catch {
        if (!isGone)
          setState(previous => ({
            ...previous,
            problem: 'The wallet could not read the vault. Check that it is on the right chain.',
          }))
      }
    }
    load(wallet)
    const timer = setInterval(() => load(wallet), POLL_MS)
    const unsubscribe = changes.subscribe(() => load(wallet))
    return () => {
      isGone = true
      clearInterval(timer)
      unsubscribe()
    }
  }, [wallet, contractAddress, asset, version])

  const reload = useCallback(() => setVersion(current => current + 1), [])
  return { ...state, reload }
}
