import { durationText } from '@agent-trading-service/protocol/duration'
import { formatUsdcExactly } from '../../format/amounts.ts'
import { Tokens } from '../../parts/figures.tsx'
import type { Connected } from '../../wallet/provider.ts'
import { AmountForm, type FormProps, useAmount, usePreview } from './amount-form.tsx'
import { SHARE_DECIMALS } from './holdings.tsx'
import type { WalletStep } from './wallet-steps.tsx'

const BPS = 10_000n

/** Rounds up, as the vault does. */
const feeOf = (amount: bigint, bps: number): bigint => (amount * BigInt(bps) + BPS - 1n) / BPS

/** Deposits USDC: approves exactly the amount if needed, then deposits it. */
export function DepositForm({ vault, holdings, liquidity }: FormProps) {
  const { ready, figures } = holdings
  const field = useAmount(figures?.usdc, max => `The wallet holds only ${max}.`)
  const { amount } = field
  const shares = usePreview(ready, vault, 'previewDeposit', amount)

  function stepsOf({ address }: Connected, value: bigint, usdc: string): WalletStep[] {
    const approve: WalletStep = {
      does: `Allow the vault to take ${usdc}`,
      done: `The vault may take ${usdc}. Nothing is deposited yet.`,
      call: { to: vault.asset, functionName: 'approve', args: [vault.contractAddress, value] },
    }
    return [
      ...((figures?.allowance ?? 0n) < value ? [approve] : []),
      {
        does: `Deposit ${usdc}`,
        done: `Deposited ${usdc}.`,
        call: { to: vault.contractAddress, functionName: 'deposit', args: [value, address] },
      },
    ]
  }

  return (
    <AmountForm verb="deposit" label="Amount, USDC" maxText="In the wallet:" {...{ vault, holdings, field, stepsOf }}>
      {amount !== undefined && liquidity && (
        <>Fee {formatUsdcExactly(`${feeOf(amount, liquidity.depositFeeBps)}`)} USDC. </>
      )}
      {shares !== undefined && (
        <>
          You receive about <Tokens value={`${shares}`} decimals={SHARE_DECIMALS} symbol="shares" />.{' '}
        </>
      )}
      {liquidity && Number(liquidity.holdingSeconds) > 0 && (
        <>The shares are locked for {durationText(Number(liquidity.holdingSeconds))}.</>
      )}
    </AmountForm>
  )
}
