import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Schema } from '../../data/client.ts'
import { useStore } from '../../data/store.ts'
import { formatExactly, formatUsdcExactly, parseAmount } from '../../format/amounts.ts'
import { Usdc } from '../../parts/figures.tsx'
import { shownPricesOf } from '../../wallet/newest-prices.ts'
import type { Connected } from '../../wallet/provider.ts'
import { readNumber } from '../../wallet/vault-calls.ts'
import { connected } from '../../wallet/wallets.ts'
import type { HoldingsState } from './use-holdings.ts'
import { ProgressNote, useProgress, type WalletStep } from './wallet-steps.tsx'

export type FormProps = {
  vault: Schema['Vault']
  holdings: HoldingsState
  liquidity: Schema['VaultStats']['liquidity']
}

type Amount = ReturnType<typeof useAmount>

/**
 * The amount of USDC that is typed into a form, and what is wrong with it. `tooMuch` says that it is above the largest
 * one.
 */
export function useAmount(max: bigint | undefined, tooMuch: (max: string) => string) {
  const [text, setText] = useState('')
  const amount = parseAmount(text)
  return { text, setText, amount, max, problem: problemOf() }

  function problemOf(): string | undefined {
    if (text.trim() === '') return undefined
    if (amount === undefined) return 'Enter a number with at most 6 decimals.'
    return max !== undefined && amount > max ? tooMuch(`${formatUsdcExactly(`${max}`)} USDC`) : undefined
  }
}

/** Asks the vault what an amount of USDC is in shares. */
export function usePreview(
  wallet: Connected | undefined,
  vault: Schema['Vault'],
  name: 'previewDeposit' | 'previewWithdraw',
  amount: bigint | undefined,
) {
  const [shares, setShares] = useState<bigint>()
  useEffect(() => {
    setShares(undefined)
    if (wallet === undefined || !amount) return
    let isGone = false
    shownPricesOf(wallet, vault.contractAddress)
      .then(bring => readNumber(wallet, vault.contractAddress, name, [amount], bring))
      .then(
        value => !isGone && setShares(value),
        () => {}, // without a preview, the sentence is left out
      )
    return () => {
      isGone = true
    }
  }, [wallet, vault.contractAddress, name, amount])
  return shares
}

type Props = Pick<FormProps, 'vault' | 'holdings'> & {
  verb: 'deposit' | 'withdraw'
  label: string
  /** Says what the largest amount is. */
  maxText: string
  field: Amount
  /** Returns what the wallet does with the amount. `usdc` is the amount in words. */
  stepsOf: (wallet: Connected, amount: bigint, usdc: string) => WalletStep[]
  /** What follows from the amount. */
  children: ComponentChildren
}

/** A form for an amount of USDC that the wallet moves in steps. */
export function AmountForm({ vault, holdings, verb, label, maxText, field, stepsOf, children }: Props) {
  const wallet = useStore(connected)
  const { progress, late, isBusy, run } = useProgress(`${verb} ${vault.contractAddress}`, holdings.reload)
  const { ready } = holdings
  const { text, setText, amount, max, problem } = field

  async function send(current: Connected, value: bigint) {
    const steps = stepsOf(current, value, `${formatUsdcExactly(`${value}`)} USDC`)
    if (await run(current, steps)) setText('')
  }

  return (
    <form
      class="deposit"
      onSubmit={event => {
        event.preventDefault()
        if (ready && amount) send(ready, amount)
      }}
    >
      <label class="field">
        <span>{label}</span>
        <input
          inputMode="decimal"
          autocomplete="off"
          placeholder="0.00"
          value={text}
          aria-invalid={problem !== undefined}
          onInput={event => setText(event.currentTarget.value)}
        />
      </label>
      {max !== undefined && (
        <p class="fine">
          {maxText} <Usdc value={`${max}`} />{' '}
          <button
            type="button"
            class="link"
            aria-label={`Max to ${verb}`}
            onClick={() => setText(formatExactly(`${max}`, 6))}
          >
            Max
          </button>
        </p>
      )}
      <p class="problem" role="status">
        {problem}
      </p>
      <p class="fine">{children}</p>
      <button type="submit" class="primary" disabled={!ready || !amount || problem !== undefined || isBusy}>
        {wallet ? (verb === 'deposit' ? 'Deposit' : 'Withdraw') : `Connect a wallet to ${verb}`}
      </button>
      <ProgressNote progress={progress} />
      <ProgressNote progress={late} />
    </form>
  )
}
