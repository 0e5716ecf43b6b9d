import { useEffect, useState } from 'preact/hooks'
import type { Schema } from '../../data/client.ts'
import { useStore } from '../../data/store.ts'
import { formatUsdcExactly, parseAmount } from '../../format/amounts.ts'
import { formatDuration } from '../../format/time.ts'
import { Tokens } from '../../parts/figures.tsx'
import type { Connected } from '../../wallet/provider.ts'
import { readNumber, sendCall } from '../../wallet/vault-calls.ts'
import { connected } from '../../wallet/wallets.ts'
import { SHARE_DECIMALS } from './holdings.tsx'
import type { HoldingsState } from './use-holdings.ts'
import { ProgressNote, useProgress } from './wallet-steps.tsx'

export type FormProps = {
  vault: Schema['Vault']
  holdings: HoldingsState
  liquidity: Schema['VaultStats']['liquidity']
}

const BPS = 10_000n

/** Rounds up, as the vault does. */
const feeOf = (amount: bigint, bps: number): bigint => (amount * BigInt(bps) + BPS - 1n) / BPS

/** Deposits USDC: approves exactly the amount if needed, then deposits it. */
export function DepositForm({ vault, holdings, liquidity }: FormProps) {
  const wallet = useStore(connected)
  const [text, setText] = useState('')
  const { progress, run } = useProgress(`deposit ${vault.contractAddress}`, holdings.reload)
  const { ready } = holdings
  const amount = parseAmount(text)
  const shares = usePreview(ready, vault, amount)
  const problem = problemOf(text, amount, holdings)

  async function deposit(current: Connected, value: bigint) {
    await run(async (step, sent) => {
      const { chainId } = current
      if ((holdings.figures?.allowance ?? 0n) < value) {
        step(`1 of 2: allow the vault to take ${formatUsdcExactly(`${value}`)} USDC. Confirm in the wallet…`)
        await sendCall(
          current,
          { chainId, to: vault.asset, functionName: 'approve', args: [vault.contractAddress, value] },
          sent,
        )
      }
      step(`Deposit ${formatUsdcExactly(`${value}`)} USDC. Confirm in the wallet…`)
      const hash = await sendCall(
        current,
        { chainId, to: vault.contractAddress, functionName: 'deposit', args: [value, current.address] },
        sent,
      )
      setText('')
      return { text: `Deposited ${formatUsdcExactly(`${value}`)} USDC.`, hash }
    })
  }

  return (
    <form
      class="deposit"
      onSubmit={event => {
        event.preventDefault()
        if (ready && amount) deposit(ready, amount)
      }}
    >
      <label class="field">
        <span>Amount, USDC</span>
        <input
          inputMode="decimal"
          autocomplete="off"
          placeholder="0.00"
          value={text}
          aria-invalid={problem !== undefined}
          onInput={event => setText(event.currentTarget.value)}
        />
      </label>
      <p class="problem" role="status">
        {problem}
      </p>
      <p class="fine">
        {amount !== undefined && liquidity && (
          <>Fee {formatUsdcExactly(`${feeOf(amount, liquidity.depositFeeBps)}`)} USDC. </>
        )}
        {shares !== undefined && (
          <>
            You receive about <Tokens value={`${shares}`} decimals={SHARE_DECIMALS} symbol="shares" />.{' '}
          </>
        )}
        {liquidity && Number(liquidity.holdingSeconds) > 0 && (
          <>The shares are locked for {formatDuration(Number(liquidity.holdingSeconds))}.</>
        )}
      </p>
      <button
        type="submit"
        class="primary"
        disabled={!ready || !amount || problem !== undefined || progress.running !== undefined}
      >
        {wallet ? 'Deposit' : 'Connect a wallet to deposit'}
      </button>
      <ProgressNote progress={progress} />
    </form>
  )
}

function problemOf(text: string, amount: bigint | undefined, { figures }: HoldingsState): string | undefined {
  if (text.trim() === '') return undefined
  if (amount === undefined) return 'Enter a number with at most 6 decimals.'
  if (figures && amount > figures.usdc) return `The wallet holds only ${formatUsdcExactly(`${figures.usdc}`)} USDC.`
  return undefined
}

function usePreview(wallet: Connected | undefined, vault: Schema['Vault'], amount: bigint | undefined) {
  const [shares, setShares] = useState<bigint>()
  useEffect(() => {
    setShares(undefined)
    if (wallet === undefined || !amount) return
    let isGone = false
    readNumber(wallet, vault.contractAddress, 'previewDeposit', [amount]).then(
      value => !isGone && setShares(value),
      () => {}, // without a preview, the sentence is left out
    )
    return () => {
      isGone = true
    }
  }, [wallet, vault.contractAddress, amount])
  return shares
}
