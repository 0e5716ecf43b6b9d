import { formatBps, formatExactly } from '../../format/amounts.ts'
import { Tokens, Usdc } from '../../parts/figures.tsx'
import type { Connected } from '../../wallet/provider.ts'
import { AmountForm, type FormProps, useAmount, usePreview } from './amount-form.tsx'
import { SHARE_DECIMALS } from './holdings.tsx'
import type { WalletStep } from './wallet-steps.tsx'

/** Withdraws an amount of USDC; the largest one redeems all shares that can be, so that none are left over. */
export function WithdrawForm({ vault, holdings, liquidity }: FormProps) {
  const { figures, ready } = holdings
  const field = useAmount(figures?.maxWithdraw, max => `At most ${max} can be withdrawn now.`)
  const { amount, problem } = field
  const isAll = amount !== undefined && amount === figures?.maxWithdraw
  const previewed = usePreview(ready, vault, 'previewWithdraw', isAll ? undefined : amount)
  const shares = isAll ? figures?.maxRedeem : previewed
  const lockedOnly = figures && figures.shares > 0n && figures.maxRedeem === 0n

  function stepsOf({ address }: Connected, value: bigint, usdc: string): WalletStep[] {
    const own = [address, address]
    if (!isAll || !figures)
      return [
        {
          does: `Withdraw ${usdc}`,
          done: `Withdrew ${usdc}.`,
          call: { to: vault.contractAddress, functionName: 'withdraw', args: [value, ...own] },
        },
      ]
    return [
      {
        does: `Redeem all shares that can be redeemed now, for about ${usdc}`,
        done: `Redeemed ${formatExactly(`${figures.maxRedeem}`, SHARE_DECIMALS)} shares for about ${usdc}.`,
        call: { to: vault.contractAddress, functionName: 'redeem', args: [figures.maxRedeem, ...own] },
      },
    ]
  }

  return (
    <AmountForm
      verb="withdraw"
      label="Amount, USDC, after the fee"
      maxText="Can be withdrawn now:"
      {...{ vault, holdings, field, stepsOf }}
    >
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
    </AmountForm>
  )
}
