import { useState } from 'preact/hooks'
import type { Schema } from '../../data/client.ts'
import { useRead } from '../../data/use-read.ts'
import { formatUsdcExactly, parseAmount } from '../../format/amounts.ts'
import { Tokens, Usdc } from '../../parts/figures.tsx'
import { Panel } from '../../parts/panel.tsx'
import { isSameAddress } from '../../wallet/provider.ts'
import type { VaultCall } from '../../wallet/vault-calls.ts'
import { SHARE_DECIMALS } from './holdings.tsx'
import type { HoldingsState } from './use-holdings.ts'
import { ProgressNote, useProgress, type WalletStep } from './wallet-steps.tsx'

type Props = { vault: Schema['Vault']; holdings: HoldingsState }

/** What waits for the next price, as while markets are shut. A vault without a queue has no such panel. */
export function Requests({ vault, holdings }: Props) {
  const { data } = useRead('listVaultRequests', { id: vault.id })
  if (!data?.queue) return null
  return (
    <Panel title="At the next price">
      <Queue vault={vault} holdings={holdings} queue={data.queue} requests={data} />
    </Panel>
  )
}

function Queue({ vault, holdings, queue, requests }: Props & { queue: string; requests: Schema['VaultRequests'] }) {
  const { ready, figures } = holdings
  const [text, setText] = useState('')
  const { progress, late, isBusy, run } = useProgress(`requests ${vault.contractAddress}`, holdings.reload)
  const amount = parseAmount(text)
  const free = figures === undefined ? 0n : figures.shares - figures.lockedShares
  const isOwn = ({ controller }: { controller: string }) =>
    ready !== undefined && isSameAddress(controller, ready.address)
  const count = requests.deposits.length + requests.redemptions.length + requests.omitted
  const send = (...steps: WalletStep[]) => ready && run(ready, steps).then(isDone => isDone && setText(''))
  const approve = (to: string, value: bigint, what: string): WalletStep => ({
    does: `Allow the queue to take ${what}`,
    done: `The queue may take ${what}. Nothing is requested yet.`,
    call: { to, functionName: 'approve', args: [queue, value] },
  })
  const onQueue = (functionName: VaultCall['functionName'], value: bigint, owners: number): VaultCall => ({
    to: queue,
    functionName,
    args: [value, ...Array.from({ length: owners }, () => ready?.address ?? '')],
  })

  return (
    <div class="action">
      <p class="fine">
        While markets are shut, leave a request: it settles at the first price of each token after it, in order, and can
        be cancelled before.{' '}
        {count === 0 ? 'Nothing waits now.' : count === 1 ? '1 request waits now.' : `${count} requests wait now.`}
      </p>
      {requests.deposits.filter(isOwn).map(({ requestId, assets }) => (
        <p key={`d${requestId}`}>
          Deposit of <Usdc value={assets} />{' '}
          <button
            type="button"
            disabled={isBusy}
            aria-label={`Cancel deposit request ${requestId}`}
            onClick={() =>
              send({
                does: `Cancel deposit request ${requestId}`,
                done: 'Cancelled; the USDC is back.',
                call: onQueue('cancelDepositRequest', BigInt(requestId), 1),
              })
            }
          >
            Cancel
          </button>
        </p>
      ))}
      {requests.redemptions.filter(isOwn).map(({ requestId, shares }) => (
        <p key={`r${requestId}`}>
          Redemption of <Tokens value={shares} decimals={SHARE_DECIMALS} symbol="shares" />{' '}
          <button
            type="button"
            disabled={isBusy}
            aria-label={`Cancel redeem request ${requestId}`}
            onClick={() =>
              send({
                does: `Cancel redeem request ${requestId}`,
                done: 'Cancelled; the shares are back.',
                call: onQueue('cancelRedeemRequest', BigInt(requestId), 1),
              })
            }
          >
            Cancel
          </button>
        </p>
      ))}
      <label class="field">
        <span>USDC to deposit at the next price</span>
        <input
          inputMode="decimal"
          autocomplete="off"
          placeholder="0.00"
          value={text}
          onInput={event => setText(event.currentTarget.value)}
        />
      </label>
      <button
        type="button"
        disabled={!ready || !amount || isBusy}
        onClick={() => {
          if (!amount) return
          const usdc = `${formatUsdcExactly(`${amount}`)} USDC`
          send(approve(vault.asset, amount, usdc), {
            does: `Request a deposit of ${usdc}`,
            done: `Requested a deposit of ${usdc}.`,
            call: onQueue('requestDeposit', amount, 2),
          })
        }}
      >
        Request this deposit
      </button>{' '}
      <button
        type="button"
        disabled={!ready || free <= 0n || isBusy}
        onClick={() =>
          send(approve(vault.contractAddress, free, 'your free shares'), {
            does: 'Request to redeem all shares that are not locked',
            done: 'Requested to redeem all shares that are not locked.',
            call: onQueue('requestRedeem', free, 2),
          })
        }
      >
        Request to redeem all free shares
      </button>
      <ProgressNote progress={progress} />
      <ProgressNote progress={late} />
    </div>
  )
}
