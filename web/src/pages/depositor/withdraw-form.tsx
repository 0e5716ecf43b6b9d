import { useState } from 'preact/hooks'
import { useStore } from '../../data/store.ts'
import { formatBps, formatExactly, formatUsdcExactly, parseAmount } from '../../format/amounts.ts'
import { Tokens, Usdc } from '../../parts/figures.tsx'
import type { Connected } from '../../wallet/provider.ts'
import { connected } from '../../wallet/wallets.ts'
import { AmountField, type FormProps, usePreview } from './deposit-form.tsx'
import { SHARE_DECIMALS } from './holdings.tsx'
import type { HoldingsState } from './use-holdings.ts'
import { ProgressNote, useProgress, type WalletStep } from './wallet-steps.tsx'

/** Withdraws an amount of USDC; the largest one redeems all shares that can be, so that none are left over. */
export function WithdrawForm({ vault, holdings, liquidity }: FormProps) {
  const wallet = useStore(connected)
  const [text, setText] = useState('')
  const { progress, late, isBusy, run } = useProgress(`withdraw ${vault.contractAddress}`, holdings.reload)
  const { figures, ready } = holdings
  const amount = parseAmount(text)
  const problem = problemOf(text, amount, holdings)
  const isAll = amount !== undefined && amount === figures?.maxWithdraw
  const previewed = usePreview(ready, vault, 'previewWithdraw', isAll ? undefined : amount)
  const shares = isAll ? figures?.maxRedeem : previewed
  const lockedOnly = figures && figures.shares > 0n && figures.maxRedeem === 0n

  async function withdraw(current: Connected, value: bigint) {
    const usdc = `${formatUsdcExactly(`${value}`)} USDC`
    const own = [current.address, current.address]
    const step: WalletStep =
      isAll && figures
        ? {
            does: `Redeem all shares that can be redeemed now, for about ${usdc}`,
            done: `Redeemed ${formatExactly(`${figures.maxRedeem}`, SHARE_DECIMALS)} shares for about ${usdc}.`,
            call: { to: vault.contractAddress, functionName: 'redeem', args: [figures.maxRedeem, ...own] },
          }
        : {
            does: `Withdraw ${usdc}`,
            done: `Withdrew ${usdc}.`,
            call: { to: vault.contractAddress, functionName: 'withdraw', args: [value, ...own] },
          }
    if (await run(current, [step])) setText('')
  }

  return (
    <form
      class="deposit"
      onSubmit={event => {
        event.preventDefault()
        if (ready && amount) withdraw(ready, amount)
      }}
    >
      <AmountField
        label="Amount, USDC, after the fee"
        value={text}
        onInput={setText}
        problem={problem}
        max={figures?.maxWithdraw}
        maxText="Can be withdrawn now:"
        maxName="Max to withdraw"
      />
      <p class="fine">
        {amount && problem === undefined && shares !== undefined && (
          <>
            You receive {isAll && 'about '}
            <Usdc value={`${amount}`} fraction={6} /> for{' '}
            <Tokens value={`${shares}`} decimals={SHARE_DECIMALS} symbol="shares" />.{' '}
          </>
        )}
        {liquidity &&
          (liquidity.withdrawFeeBps === 0
            ? 'There is no withdrawal fee. '
            : `The fee of ${formatBps(liquidity.withdrawFeeBps)} is taken in shares, besides the amount. `)}
        {lockedOnly && 'All of your shares are within their holding time now.'}
      </p>
      <button type="submit" class="primary" disabled={!ready || !amount || problem !== undefined || isBusy}>
        {wallet ? 'Withdraw' : 'Connect a wallet to withdraw'}
      </button>
      <ProgressNote progress={progress} />
      <ProgressNote progress={late} />
    </form>
  )
}

function problemOf(text: string, amount: bigint | undefined, { figures }: HoldingsState): string | undefined {
  if (text.trim() === '') return undefined
  if (amount === undefined) return 'Enter a number with at most 6 decimals.'
  if (figures && amount > figures.maxWithdraw)
    return `At most ${formatUsdcExactly(`${figures.maxWithdraw}`)} USDC can be withdrawn now.`
  return undefined
}
