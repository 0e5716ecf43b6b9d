import { Tokens, Usdc } from '../../parts/figures.tsx'
import { Facts } from '../../parts/panel.tsx'
import { Loading } from '../../parts/states.tsx'
import type { HoldingsState } from './use-holdings.ts'

/** ERC-4626 shares of these vaults have six decimals more than USDC. */
export const SHARE_DECIMALS = 12

/** The account's holdings, their value, and the locked part. */
export function Holdings({ holdings: { figures, problem } }: { holdings: HoldingsState }) {
  if (figures === undefined)
    return problem ? <p class="note-line warn">{problem}</p> : <Loading what="your holdings" lines={4} />
  const shares = (value: bigint) => <Tokens value={`${value}`} decimals={SHARE_DECIMALS} symbol="shares" fraction={4} />
  return (
    <>
      {problem && <p class="note-line warn">{problem}</p>}
      <Facts
        items={[
          ['Shares', shares(figures.shares)],
          ['Worth now, after the fee', <Usdc key="worth" value={`${figures.worth}`} />],
          ['Within their holding time', shares(figures.lockedShares)],
          ['Can be withdrawn now', <Usdc key="max" value={`${figures.maxWithdraw}`} />],
          ['USDC in the wallet', <Usdc key="usdc" value={`${figures.usdc}`} />],
        ]}
      />
    </>
  )
}
