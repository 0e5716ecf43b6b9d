import type { Check, OrderRequest } from '@agent-trading-service/client'
import { explainCheck } from '@agent-trading-service/protocol/check-figures'
import { percentToBps, stopPercentToBps, wholeExits } from '@agent-trading-service/protocol/percent'
import { useState } from 'preact/hooks'
import { reads, type Schema } from '../../data/client.ts'
import { useStore } from '../../data/store.ts'
import { useRead } from '../../data/use-read.ts'
import { formatBps, formatUsd, parseAmount, withSign } from '../../format/amounts.ts'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { useDeployment } from '../../parts/deployment.tsx'
import { Price, Usdc } from '../../parts/figures.tsx'
import { ORDER, type Order, OrderWords, useOpenOrders, WAITS } from '../../parts/orders.tsx'
import { Panel } from '../../parts/panel.tsx'
import { WhenReady } from '../../parts/states.tsx'
import { shortened } from '../../parts/text.tsx'
import { isSameAddress } from '../../wallet/provider.ts'
import { type Fact, SignedAction } from '../../wallet/signed-action.tsx'
import { connected } from '../../wallet/wallets.ts'
import { fromLocalField } from './mandate-draft.ts'
import { useTokensOf } from './mandate-form.tsx'
import { ordersOf } from './owner-client.ts'

type Props = { control: Schema['AgentControl'] }

/** The open orders of an agent, and what its signer signs to place and cancel them. Nothing without an order book. */
export function OrderDesk({ control }: Props) {
  const { agentId, signer } = control
  const { contracts } = useDeployment()
  const wallet = useStore(connected)
  const open = useOpenOrders(agentId)
  const [ending, setEnding] = useState<Order[]>([])
  if (contracts.OrderBook === undefined) return null
  const isEnding = ({ orderId }: Order) => ending.some(order => order.orderId === orderId)
  const cancel: Column<Order> = {
    head: 'Cancel',
    part: 'text',
    isNumber: true,
    isHeadHidden: true,
    cell: order => (
      <button type="button" class="small" disabled={isEnding(order)} onClick={() => setEnding([...ending, order])}>
        Cancel<span class="hidden"> order {shortened(order.orderId)}</span>
      </button>
    ),
  }
  const isSigner = wallet !== undefined && isSameAddress(signer, wallet.address)
  return (
    <Panel title="Orders" aside={open.data && <span class="fine num">{open.data.orders.length} open</span>}>
      <div class="stack">
        <WhenReady resource={open} what="the orders" lines={1}>
          {({ orders }) => (
            <DataTable
              label="Open orders"
              columns={[ORDER, WAITS, ...(isSigner ? [cancel] : [])]}
              rows={orders}
              keyOf={({ orderId }) => orderId}
              empty={<p class="fine">No order waits.</p>}
            />
          )}
        </WhenReady>
        {ending.map(order => (
          <SignedAction
            key={order.orderId}
            title={`Cancel order ${shortened(order.orderId)}`}
            text={<OrderWords order={order} />}
            review="Review"
            signer={signer}
            leave={() => setEnding(ending => ending.filter(({ orderId }) => orderId !== order.orderId))}
            prepare={async () => {
              const prepared = await (await ordersOf(agentId)).prepareCancel({ orderId: order.orderId })
              return { ...prepared, findObstacle: async () => problemOf(prepared.checks) }
            }}
          />
        ))}
        <PlaceOrder control={control} />
      </div>
    </Panel>
  )
}

/** Says which rule the service would refuse a message for; undefined if it would take it. */
function problemOf(checks: readonly Check[]): string | undefined {
  const failed = checks.find(({ pass }) => !pass)
  return failed && `Nothing was signed: the check ${failed.rule} fails${explainCheck(failed)}. ${failed.remedy ?? ''}`
}

const KINDS = {
  stop: 'Stop: sell at a price or lower',
  takeProfit: 'Take profit: sell at a price or higher',
  trailingStop: 'Trailing stop: sell after a fall from the peak',
  timeExit: 'Sell at a time',
  limit: 'Limit: buy at a price or lower',
  breakout: 'Breakout: buy at a price or higher',
}
type Kind = keyof typeof KINDS
const buys = (kind: Kind) => kind === 'limit' || kind === 'breakout'

const FIELDS = { share: '100', price: '', trail: '', time: '', usdcAmount: '', stop: '' }
const LABELS: Record<keyof typeof FIELDS, string> = {
  share: 'Share of the position, %',
  price: 'Price, USD',
  trail: 'Distance below the peak, %',
  time: 'Not before',
  usdcAmount: 'Amount, USDC',
  stop: 'Stop-loss below the entry price, %',
}
type Name = keyof typeof FIELDS
type Fields = typeof FIELDS

/** The fields that each kind of order has. */
const fieldsOf = (kind: Kind): Name[] => {
  if (buys(kind)) return ['usdcAmount', 'price', 'stop']
  return [kind === 'trailingStop' ? 'trail' : kind === 'timeExit' ? 'time' : 'price', 'share']
}

const plain = (text: string) => text.trim().replaceAll(',', '')

/** Says what a field must be; undefined if its text is that. */
const RULES: Record<Name, (text: string) => string | undefined> = {
  share: text => ((percentToBps(text) ?? 10_001) <= 10_000 ? undefined : 'a percentage up to 100'),
  price: text => (parseAmount(text, 8) ? undefined : 'a number above 0 with at most 8 decimals'),
  trail: text => (stopPercentToBps(text) ? undefined : 'a percentage between 0 and 100'),
  time: text => ((fromLocalField(text) ?? 0) * 1_000 > Date.now() ? undefined : 'a time to come'),
  usdcAmount: text => (parseAmount(text) ? undefined : 'a number above 0 with at most 6 decimals'),
  stop: text => (stopPercentToBps(text) ? undefined : 'a percentage between 0 and 100'),
}

function requestOf(kind: Kind, { share, price, trail, time, usdcAmount, stop }: Fields, target: string): OrderRequest {
  const sale = { positionId: target, exitBps: percentToBps(share) ?? 0 }
  switch (kind) {
    case 'limit':
    case 'breakout':
      return { type: kind, symbol: target, usdcAmount: plain(usdcAmount), price: plain(price), stopLossPercent: stop }
    case 'stop':
    case 'takeProfit':
      return { type: kind, ...sale, price: plain(price) }
    case 'trailingStop':
      return { type: kind, ...sale, trailPercent: trail }
    case 'timeExit':
      return { type: kind, ...sale, validAfter: BigInt(fromLocalField(time) ?? 0) }
  }
}

const priceOf = (token: Schema['Token'] | undefined) =>
  token === undefined || Number(token.price.priceUsd) === 0 ? undefined : token.price.priceUsd

/** The fields of an order with one part. */
function PlaceOrder({ control: { agentId, signer, mandate } }: Props) {
  const [kind, setKind] = useState<Kind>('stop')
  const [fields, setFields] = useState(FIELDS)
  const [chosen, choose] = useState({ position: '', symbol: '' })
  const positions = useRead('listPositions', { agentId }).data?.positions
  const tokens = useTokensOf(agentId).filter(
    ({ address }) => mandate.allowedTokens?.some(token => token.address === address) ?? true,
  )
  // One that was chosen and is closed by now is not replaced by another one.
  const positionId = chosen.position || positions?.[0]?.positionId
  const position = positions?.find(open => open.positionId === positionId)
  const token = tokens.find(({ symbol }) => symbol === (buys(kind) ? chosen.symbol : position?.symbol))
  const priceShown = priceOf(token)
  const target = buys(kind) ? token?.symbol : position?.positionId
  const wrong = fieldsOf(kind).find(name => RULES[name](fields[name]) !== undefined)

  async function prepare() {
    const orders = await ordersOf(agentId)
    const prepared = await orders.preparePlace(requestOf(kind, fields, target ?? ''))
    const { lossAtStopUsdc } = prepared.quote
    const symbol = buys(kind) ? target : position?.symbol
    // The prices inform; an order that protects does not wait for them.
    const { tokens } = await reads.listTokens({}).catch(() => ({ tokens: [] }))
    const priceNow = priceOf(tokens.find(token => token.symbol === symbol))
    return {
      ...prepared,
      exits: buys(kind) ? wholeExits(stopPercentToBps(fields.stop), undefined) : [],
      facts: [
        ...distanceFacts(kind, fields, priceNow),
        ...(lossAtStopUsdc === undefined
          ? []
          : [['Loss at the stop', <Usdc key="loss" value={lossAtStopUsdc} />] satisfies Fact]),
      ],
      findObstacle: async () => problemOf(prepared.checks),
    }
  }
  return (
    <SignedAction
      title="Place an order"
      text="It waits on chain for its price or its time. Anybody may execute it then, and the keeper does."
      review="Review"
      signer={signer}
      problem={
        target === undefined
          ? buys(kind)
            ? 'Choose a token.'
            : positions?.length === 0
              ? 'The agent has no open position to sell.'
              : 'Choose an open position.'
          : wrong && `${LABELS[wrong]}: enter ${RULES[wrong](fields[wrong])}.`
      }
      prepare={prepare}
    >
      <label class="field">
        <span>Kind of order</span>
        <select value={kind} onChange={event => setKind(event.currentTarget.value as Kind)}>
          {Object.entries(KINDS).map(([value, text]) => (
            <option key={value} value={value} selected={value === kind}>
              {text}
            </option>
          ))}
        </select>
      </label>
      <div class="fields">
        {buys(kind) ? (
          <Select
            label="Token"
            value={token?.symbol}
            options={tokens.map(({ symbol }) => [symbol, symbol])}
            onChange={symbol => choose({ ...chosen, symbol })}
          />
        ) : (
          <Select
            label="Open position"
            value={position?.positionId}
            options={(positions ?? []).map(({ positionId, symbol }) => [positionId, `${symbol} #${positionId}`])}
            onChange={position => choose({ ...chosen, position })}
          />
        )}
        {fieldsOf(kind).map(name => (
          <label key={name} class="field">
            <span>{LABELS[name]}</span>
            <input
              {...(name === 'time' ? { type: 'datetime-local' } : { inputMode: 'decimal', autocomplete: 'off' })}
              placeholder={name === 'price' && priceShown ? `now ${formatUsd(priceShown)}` : undefined}
              value={fields[name]}
              aria-invalid={fields[name] !== '' && RULES[name](fields[name]) !== undefined}
              onInput={event => setFields({ ...fields, [name]: event.currentTarget.value })}
            />
          </label>
        ))}
      </div>
    </SignedAction>
  )
}

/**
 * Returns the price now, and how far an order's trigger is from it. The trigger of a trailing stop rises with the
 * price.
 */
function distanceFacts(kind: Kind, { price, trail }: Fields, priceNow: string | undefined): Fact[] {
  if (priceNow === undefined || kind === 'timeExit') return []
  const trailBps = stopPercentToBps(trail) ?? 0
  const bps = kind === 'trailingStop' ? -trailBps : Math.round((Number(plain(price)) / Number(priceNow) - 1) * 10_000)
  return [
    ['Price now', <Price key="now" usd={priceNow} />],
    ['Trigger from the price now', withSign(formatBps(bps), bps > 0)],
  ]
}

type SelectProps = {
  label: string
  value: string | undefined
  options: [value: string, text: string][]
  onChange: (value: string) => void
}

const Select = ({ label, value = '', options, onChange }: SelectProps) => (
  <label class="field">
    <span>{label}</span>
    <select value={value} onChange={event => onChange(event.currentTarget.value)}>
      {value === '' && <option value="">Choose…</option>}
      {options.map(([option, text]) => (
        <option key={option} value={option} selected={option === value}>
          {text}
        </option>
      ))}
    </select>
  </label>
)
