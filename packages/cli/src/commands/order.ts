import type { components } from '@agent-trading-service/client'
import { LAST_ORDER_SECOND } from '@agent-trading-service/protocol/order-types'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { Failure } from '../failure.ts'
import { createPrinter } from '../output/printer.ts'
import { withProgress } from '../output/progress.ts'
import { createReader, type Reader } from '../trading/create-reader.ts'
import type { OrderRequest, When } from '../trading/trader.ts'
import {
  agentOption,
  createGroup,
  createServiceCommand,
  createSigningCommand,
  digits,
  integer,
  type ServiceOptions,
  type SigningOptions,
  usdcAmount,
} from './options.ts'
import { agentMissing } from './reads.ts'
import { runPlan } from './run-plan.ts'
import { intentCommand, type LadderOptions, ladder, ladderOf, percent, share, slippage } from './trade.ts'

type OrderOptions = SigningOptions &
  LadderOptions & {
    agent?: string
    note?: string
    maxSlippageBps?: number
    at?: string
    above?: string
    below?: string
    trail?: number
    activate?: string
    on?: When
    parts?: number
    every?: string
    from?: When
    until?: When
    orderKey?: string
  }

/** `ats order buy`, `sell`, `twap`, `cancel` and `show`, and `ats orders`. */
export function orderCommands(): Command[] {
  const order = createGroup(
    'order',
    'orders that wait on chain for a price or a time',
    'ats order buy NVDA 250 --at 120 --stop 8% --agent 1',
    'ats order sell NVDA 50% --trail 5% --agent 1',
  )
  for (const each of [buyCommand(), sellCommand(), twapCommand(), cancelCommand(), showCommand()])
    order.addCommand(each)
  return [order, ordersCommand()]
}

function buyCommand(): Command {
  const command = intentCommand(
    'buy',
    'buy once the oracle has a price; without a ladder, a new position stops at -8 % and takes at 15 %',
    'ats order buy NVDA 250 --at 120 --stop 8% --agent 1',
    'ats order buy NVDA 250 --above 130 --until 7d --agent 1',
  )
  return scheduled(ladder(slippage(command)))
    .argument('<symbol>', 'token to buy as a new position, or the id of a position to add to')
    .argument('<usdc>', 'amount in USDC', usdcAmount)
    .addOption(priceOption('--at <price>', 'limit: buy at this price or lower').conflicts('above'))
    .addOption(priceOption('--above <price>', 'breakout: buy at this price or higher'))
    .action((target: string, amount: string, options: OrderOptions) => {
      const { at, above } = options
      if (at === undefined && above === undefined) throw conditionMissing('--at or --above')
      const type = at === undefined ? 'breakout' : 'limit'
      return place(command, options, { type, price: at ?? above, ...purchaseOf(target, amount, options) })
    })
}

function sellCommand(): Command {
  const command = intentCommand(
    'sell',
    'sell at a price, behind the highest price, or at a time',
    'ats order sell NVDA 50% --trail 5% --agent 1',
    'ats order sell NVDA --at 118.5 --agent 1',
    'ats order sell NVDA --on 2027-01-29T20:00:00Z --agent 1',
  )
  return scheduled(command)
    .argument('<position>', 'id of the position, or the symbol that it holds')
    .argument('[share]', 'share of what is left then, such as 50%, or in basis points; everything by default', share)
    .addOption(
      priceOption('--at <price>', 'stop below the present price, take-profit above it').conflicts(
        SALE_CONDITIONS('at'),
      ),
    )
    .addOption(priceOption('--below <price>', 'stop: sell at this price or lower').conflicts(SALE_CONDITIONS('below')))
    .addOption(
      priceOption('--above <price>', 'take-profit: sell at this price or higher').conflicts(SALE_CONDITIONS('above')),
    )
    .addOption(
      new Option('--trail <percent>', 'trailing stop: sell this far below the highest price since placing')
        .argParser(percent)
        .conflicts(SALE_CONDITIONS('trail')),
    )
    .addOption(priceOption('--activate <price>', 'with --trail: start at this price'))
    .addOption(
      new Option('--on <time>', 'sell at this time, or this much later: 2027-01-29T20:00:00Z or 2h')
        .argParser(when)
        .conflicts(['from', ...SALE_CONDITIONS('on')]),
    )
    .action((positionId: string, exitBps: number | undefined, options: OrderOptions) => {
      const condition = saleCondition(options)
      if (condition === undefined) throw conditionMissing('one of --at, --below, --above, --trail and --on')
      return place(command, options, { ...condition, positionId, exitBps })
    })
}

const SALE_CONDITIONS = (own: string) => ['at', 'below', 'above', 'trail', 'on'].filter(name => name !== own)

function saleCondition({ at, below, above, trail, activate, on }: OrderOptions): Partial<OrderRequest> | undefined {
  if (activate !== undefined && trail === undefined)
    throw new Failure('usage', 'Only a trailing stop is activated by a price.', {
      code: 'INVALID_REQUEST',
      remedy: 'Pass --trail as well, or leave --activate out.',
    })
  if (trail !== undefined) return { type: 'trailingStop', trailBps: trail, price: activate }
  if (on !== undefined) return { type: 'timeExit', validAfter: on }
  if (below !== undefined) return { type: 'stop', price: below }
  if (above !== undefined) return { type: 'takeProfit', price: above }
  return at === undefined ? undefined : { price: at }
}

function twapCommand(): Command {
  const command = intentCommand(
    'twap',
    'buy for an amount, or sell a share of a position, in equal parts',
    'ats order twap NVDA 1000 --parts 10 --every 15m --agent 1',
    'ats order twap NVDA 100% --parts 4 --every 1h --agent 1',
  )
  return scheduled(ladder(slippage(command)))
    .argument('<symbol>', 'token to buy or to sell, or the id of a position')
    .argument('<amount>', 'USDC to buy for, or the share to sell, such as 50%', amountOrShare)
    .addOption(new Option('--parts <n>', 'number of parts').argParser(integer(1, 100)).makeOptionMandatory())
    .addOption(
      new Option('--every <duration>', 'time from one part to the next, such as 15m')
        .argParser(text => `${duration(text)}`)
        .makeOptionMandatory(),
    )
    .action((target: string, amount: Amount, options: OrderOptions) => {
      const { maxSlippageBps } = options
      const sale = { positionId: target, exits: ladderOf(options), maxSlippageBps }
      const trade = 'exitBps' in amount ? { ...sale, ...amount } : purchaseOf(target, amount.usdc, options)
      return place(command, options, { type: 'twap', ...trade })
    })
}

function cancelCommand(): Command {
  const command = createSigningCommand('cancel', 'cancel an open order', 'ats order cancel 0x4d2f31 --agent 1')
  return command
    .addOption(agentOption())
    .argument('<orderId>', 'id of the order, or the first digits of an open one')
    .action((orderId: string, options: OrderOptions) =>
      runPlan(command, options, (trader, { agent }) => trader.planCancelOrder({ agentId: agent, orderId })),
    )
}

function showCommand(): Command {
  return createServiceCommand('show', 'show an order and what it waits for', 'ats order show 0x… --agent 1')
    .argument('<orderId>', 'id of the order, or its first digits')
    .option('--wide', 'show every column')
    .addOption(agentOption())
    .action(async (orderId: string, { agent, output, wide, ...service }: OrdersOptions) => {
      if (agent === undefined) throw agentMissing()
      const reader = createReader(service)
      const read = wholeId(reader, agent, orderId).then(whole => reader.getOrder({ agentId: agent, orderId: whole }))
      const order = await withProgress('order', read)
      createPrinter(output, { wide }).result(output === 'json' ? order : forTable(order))
    })
}

/** Returns the id that begins with some digits, of the open orders or the newest past ones; else what was given. */
async function wholeId(reader: Reader, agentId: string, given: string): Promise<string> {
  if (given.length === 66) return given
  const lists = await Promise.all([
    reader.listOrders({ agentId, state: 'open' }),
    reader.listOrders({ agentId, state: 'past', limit: 100 }),
  ])
  const found = lists.flatMap(({ orders }) => orders).filter(order => order.orderId.startsWith(given.toLowerCase()))
  return found.length === 1 && found[0] ? found[0].orderId : given
}

/** `ats orders`: those that wait, or with `--past` those that have ended. */
function ordersCommand(): Command {
  return createServiceCommand('orders', 'list the open orders of an agent', 'ats orders --agent 1', 'ats orders --past')
    .addOption(agentOption())
    .option('--past', 'those that have ended')
    .option('--limit <n>', 'at most this many', integer(1, 100))
    .option('--cursor <cursor>', 'continue after an earlier page: its nextCursor')
    .option('--wide', 'show every column')
    .action(async ({ agent, past, limit, cursor, output, wide, ...service }: OrdersOptions) => {
      if (agent === undefined) throw agentMissing()
      const query = { agentId: agent, state: past ? ('past' as const) : ('open' as const) }
      const page = { ...(limit !== undefined && { limit }), ...(cursor !== undefined && { cursor }) }
      const list = await withProgress('orders', createReader(service).listOrders({ ...query, ...page }))
      const of = past && 'pastOrders'
      createPrinter(output, { wide, of }).result(output === 'json' ? list : ordersForTable(list, wide))
    })
}
/** Returns a list of orders as tables show it: the first digits of an id are enough to show or to cancel it. */
export const ordersForTable = (list: components['schemas']['OrderList'], wide?: boolean) => ({
  ...list,
  orders: list.orders.map(order => ({
    ...forTable(order),
    orderId: wide ? order.orderId : order.orderId.slice(0, 10),
  })),
})

/** Returns an order as tables show it. */
const forTable = <O extends components['schemas']['Order']>({ validUntil, ...order }: O) => ({
  ...order,
  validUntil: BigInt(validUntil) === LAST_ORDER_SECOND ? 'with its position' : validUntil,
})
type OrdersOptions = ServiceOptions & { agent?: string; past?: true; limit?: number; cursor?: string; wide?: boolean }

const conditionMissing = (options: string) =>
  new Failure('usage', 'The order says neither a price nor a time to wait for.', {
    code: 'INVALID_REQUEST',
    remedy: `Pass ${options}.`,
  })

const place = (command: Command, options: OrderOptions, order: Partial<OrderRequest>) =>
  runPlan(command, options, (trader, { agent, note, from, until, parts, every, orderKey }) =>
    trader.planOrder({
      agentId: agent,
      note,
      validAfter: from,
      validUntil: until,
      parts,
      interval: every,
      key: orderKey,
      ...order,
    }),
  )

/** Digits name a position to add to, everything else a token to buy. */
function purchaseOf(target: string, usdcAmount: string, options: OrderOptions): Partial<OrderRequest> {
  const { maxSlippageBps } = options
  const common = { usdcAmount, maxSlippageBps, exits: ladderOf(options) }
  return /^\d+$/.test(target) ? { positionId: target, ...common } : { symbol: target, ...common }
}

const scheduled = (command: Command) =>
  command
    .addOption(new Option('--from <time>', 'not before this time, or this much later, such as 2h').argParser(when))
    .addOption(
      new Option(
        '--until <time>',
        'ends at this time, or this much later; by default a purchase after 90 days, a sale with its position',
      ).argParser(when),
    )
    .addOption(new Option('--order-key <n>', 'replaces the open order with the same key').argParser(digits))

type Amount = { usdc: string } | { exitBps: number }
const amountOrShare = (text: string): Amount =>
  text.trim().endsWith('%') ? { exitBps: share(text) } : { usdc: usdcAmount(text) }

const priceOption = (flags: string, description: string) =>
  new Option(flags, `${description}; US dollars`).argParser(price)

/** Parses a price in US dollars. Text, because a number would lose digits. */
function price(text: string): string {
  if (/^\d{1,12}(\.\d{1,8})?$/.test(text) && Number(text) > 0) return text
  throw new InvalidArgumentError('A price in US dollars is expected, such as 120 or 118.25.')
}

const UNITS: Record<string, number> = { s: 1, m: 60, min: 60, h: 3_600, d: 86_400 }

/** Parses a duration such as `15m`, `2h` or `7d` into seconds. */
export function duration(text: string): number {
  const [, count, unit = ''] = /^(\d{1,6}) ?(s|m|min|h|d)$/.exec(text.trim()) ?? []
  if (count !== undefined && Number(count) > 0) return Number(count) * (UNITS[unit] ?? 0)
  throw new InvalidArgumentError('A duration is expected, such as 15m, 2h or 7d.')
}

/** Parses a time with its zone, or a duration from now. */
export function when(text: string): When {
  if (/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2})$/.test(text)) {
    const time = Date.parse(text)
    if (!Number.isNaN(time)) return { at: BigInt(Math.floor(time / 1_000)) }
  }
  try {
    return { in: BigInt(duration(text)) }
  } catch {
    throw new InvalidArgumentError('A time such as 2027-01-29T20:00:00Z is expected, or a duration such as 2h or 7d.')
  }
}
