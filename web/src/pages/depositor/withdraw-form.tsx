import { useState } from 'preact/hooks'
import { useStore } from '../../data/store.ts'
import { formatExactly, formatUsdcExactly, parseAmount } from '../../format/amounts.ts'
import type { Connected } from '../../wallet/provider.ts'
import { sendCall } from '../../wallet/vault-calls.ts'
import { connected } from '../../wallet/wallets.ts'
import type { FormProps } from './deposit-form.tsx'
import { SHARE_DECIMALS } from './holdings.tsx'
import type { HoldingsState } from './use-holdings.ts'
import { ProgressNote, useProgress } from './wallet-steps.tsx'

/** Withdraws an amount of USDC, or redeems all shares that can be. */
export function WithdrawForm({ vault, holdings, liquidity }: FormProps) {
  const wallet = useStore(connected)
  const [text, setText] = useState('')
  const { progress, run } = useProgress(`withdraw ${vault.contractAddress}`, holdings.reload)
  const { figures, ready } = holdings
  const amount = parseAmount(text)
  const problem = problemOf(text, amount, holdings)
  const isBusy = progress.running !== undefined
  const lockedOnly = figures && figures.shares > 0n && figures.maxRedeem === 0n

  const withdraw = (current: Connected, value: bigint) =>
    run(async (step, sent) => {
      const { chainId } = current
      step(`Withdraw ${formatUsdcExactly(`${value}`)} USDC. Confirm in the wallet…`)
      const args = [value, current.address, current.address]
      const hash = await sendCall(current, { chainId, to: vault.contractAddress, functionName: 'withdraw', args }, sent)
      setText('')
      return { text: `Withdrew ${formatUsdcExactly(`${value}`)} USDC.`, hash }
    })
  const redeemAll = (current: Connected, shares: bigint) =>
    run(async (step, sent) => {
      const { chainId } = current
      const text = `${formatExactly(`${shares}`, SHARE_DECIMALS)} shares`
      step(`Redeem ${text}, all that can be redeemed now. Confirm in the wallet…`)
      const args = [shares, current.address, current.address]
      const hash = await sendCall(current, { chainId, to: vault.contractAddress, functionName: 'redeem', args }, sent)
      return { text: `Redeemed ${text}.`, hash }
    })

  return (
    <form
      class="deposit"
      onSubmit={event => {
        event.preventDefault()
        if (ready && amount) withdraw(ready, amount)
      }}
    >
      <label class="field">
        <span>Amount, USDC, after the fee</span>
        <input
          inputMode="decimal"
          autocomplete="off"
          placeholder={figures ? formatExactly(`${figures.maxWithdraw}`, 6) : '0.00'}
          value={text}
          aria-invalid={problem !== undefined}
          onInput={event => setText(event.currentTarget.value)}
        />
      </label>
      <p class="problem" role="status">
        {problem}
      </p>
      <p class="fine">
        {liquidity &&
          (liquidity.withdrawFeeBps === 0
            ? 'There is no withdrawal fee. '
            : 'The fee is taken in shares, besides the amount. ')}
        {lockedOnly && 'All of your shares are within their holding time now.'}
      </p>
      <div class="buttons">
        <button type="submit" class="primary" disabled={!ready || !amount || problem !== undefined || isBusy}>
          {wallet ? 'Withdraw' : 'Connect a wallet to withdraw'}
        </button>
        {ready && figures && figures.maxRedeem > 0n && (
          <button type="button" disabled={isBusy} onClick={() => redeemAll(ready, figures.maxRedeem)}>
            Withdraw all
          </button>
        )}
      </div>
      <ProgressNote progress={progress} />
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
