import { useEffect, useState } from 'preact/hooks'
import type { Schema } from '../../data/client.ts'
import { useStore } from '../../data/store.ts'
import { formatExactly, formatUsdcExactly, parseAmount } from '../../format/amounts.ts'
import { formatDuration } from '../../format/time.ts'
import { Tokens, Usdc } from '../../parts/figures.tsx'
import type { Connected } from '../../wallet/provider.ts'
import { readNumber } from '../../wallet/vault-calls.ts'
import { connected } from '../../wallet/wallets.ts'
import { SHARE_DECIMALS } from './holdings.tsx'
import type { HoldingsState } from './use-holdings.ts'
import { ProgressNote, useProgress, type WalletStep } from './wallet-steps.tsx'

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
  const { progress, late, isBusy, run } = useProgress(`deposit ${vault.contractAddress}`, holdings.reload)
  const { ready, figures } = holdings
  const amount = parseAmount(text)
  const shares = usePreview(ready, vault, 'previewDeposit', amount)
  const problem = problemOf(text, amount, holdings)

  async function deposit(current: Connected, value: bigint) {
    const usdc = `${formatUsdcExactly(`${value}`)} USDC`
    const approve: WalletStep = {
      does: `Allow the vault to take ${usdc}`,
      done: `The vault may take ${usdc}. Nothing is deposited yet.`,
      call: { to: vault.asset, functionName: 'approve', args: [vault.contractAddress, value] },
    }
    const steps: WalletStep[] = [
      ...((figures?.allowance ?? 0n) < value ? [approve] : []),
      {
        does: `Deposit ${usdc}`,
        done: `Deposited ${usdc}.`,
        call: { to: vault.contractAddress, functionName: 'deposit', args: [value, current.address] },
      },
    ]
    if (await run(current, steps)) setText('')
  }

  return (
    <form
      class="deposit"
      onSubmit={event => {
        event.preventDefault()
        if (ready && amount) deposit(ready, amount)
      }}
    >
      <AmountField
        label="Amount, USDC"
        value={text}
        onInput={setText}
        problem={problem}
        max={figures?.usdc}
        maxText="In the wallet:"
        maxName="Max to deposit"
      />
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
      <button type="submit" class="primary" disabled={!ready || !amount || problem !== undefined || isBusy}>
        {wallet ? 'Deposit' : 'Connect a wallet to deposit'}
      </button>
      <ProgressNote progress={progress} />
      <ProgressNote progress={late} />
    </form>
  )
}

function problemOf(text: string, amount: bigint | undefined, { figures }: HoldingsState): string | undefined {
  if (text.trim() === '') return undefined
  if (amount === undefined) return 'Enter a number with at most 6 decimals.'
  if (figures && amount > figures.usdc) return `The wallet holds only ${formatUsdcExactly(`${figures.usdc}`)} USDC.`
  return undefined
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
    readNumber(wallet, vault.contractAddress, name, [amount]).then(
      value => !isGone && setShares(value),
      () => {}, // without a preview, the sentence is left out
    )
    return () => {
      isGone = true
    }
  }, [wallet, vault.contractAddress, name, amount])
  return shares
}

type AmountFieldProps = {
  label: string
  value: string
  onInput: (value: string) => void
  problem: string | undefined
  max: bigint | undefined
  /** Says what the largest amount is. */
  maxText: string
  /** Names the button that takes it. */
  maxName: string
}

/** A field for an amount of USDC, with the largest one. */
export const AmountField = ({ label, value, onInput, problem, max, maxText, maxName }: AmountFieldProps) => (
  <>
    <label class="field">
      <span>{label}</span>
      <input
        inputMode="decimal"
        autocomplete="off"
        placeholder="0.00"
        value={value}
        aria-invalid={problem !== undefined}
        onInput={event => onInput(event.currentTarget.value)}
      />
    </label>
    {max !== undefined && (
      <p class="fine">
        {maxText} <Usdc value={`${max}`} />{' '}
        <button type="button" class="link" aria-label={maxName} onClick={() => onInput(formatExactly(`${max}`, 6))}>
          Max
        </button>
      </p>
    )}
    <p class="problem" role="status">
      {problem}
    </p>
  </>
)
