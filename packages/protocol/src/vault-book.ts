import { type Address, zeroAddress } from 'viem'
import { isExecution, isPurchase } from './agent-book.ts'
import { CapitalMode } from './enums.ts'
import { usdcValue } from './oracle-price.ts'
import { compareLogPositions, type Trade } from './trade-events.ts'

// What a vault's events and the trades with its money add up to, and its worth from that, as `MandateVault` computes
// it.

/** The USDC, shares and tokens of a vault, in base units, and the settings that change them. */
export type VaultBook = {
  idle: bigint
  shares: bigint
  holdings: Readonly<Record<Address, bigint>>
  writtenOff: readonly Address[]
  depositFeeBps: bigint
  withdrawFeeBps: bigint
  /** The zero address if fees stay in the vault. */
  feeRecipient: Address
}

export const EMPTY_VAULT: VaultBook = {
  idle: 0n,
  shares: 0n,
  holdings: {},
  writtenOff: [],
  depositFeeBps: 0n,
  withdrawFeeBps: 0n,
  feeRecipient: zeroAddress,
}

/** The events of a vault that change its worth. The trades with its money do so too. */
export const VAULT_WORTH_EVENTS = [
  'Deposit',
  'Withdraw',
  'Transfer',
  'FeesUpdated',
  'FeeRetained',
  'TokenWrittenOffUpdated',
] as const

/** An event of a vault; integers in `args` are digits. */
type VaultEvent = { name: string; args: Record<string, unknown> }

/** An event of a vault with its place; `timestamp` is in Unix seconds. */
export type VaultLog = VaultEvent & { contract: Address; block: number; logIndex: number; timestamp: number }

/** A change of a vault's book. */
type VaultChange = {
  blockNumber: bigint
  logIndex: number
  timestamp: number
  vault: Address
  apply: (book: VaultBook) => VaultBook
}

const movesMoney = (trade: Trade) => isExecution(trade) && trade.capitalMode !== CapitalMode.Simulated
const isWorthEvent = ({ name }: VaultEvent) => (VAULT_WORTH_EVENTS as readonly string[]).includes(name)

/** Returns the changes that trades and events make to the books of vaults, oldest first. */
export function vaultChangesOf(trades: readonly Trade[], events: readonly VaultLog[]): VaultChange[] {
  const ofTrades = trades.filter(movesMoney).map(trade => ({
    blockNumber: trade.blockNumber,
    logIndex: trade.logIndex,
    timestamp: Number(trade.timestamp),
    vault: trade.vault,
    apply: (book: VaultBook) => bookVaultTrade(book, trade),
  }))
  const ofEvents = events.filter(isWorthEvent).map(event => ({
    blockNumber: BigInt(event.block),
    logIndex: event.logIndex,
    timestamp: event.timestamp,
    vault: event.contract,
    apply: (book: VaultBook) => bookVaultEvent(book, event),
  }))
  return [...ofTrades, ...ofEvents].sort(compareLogPositions)
}

const BPS = 10_000n
const ceilDiv = (value: bigint, divisor: bigint) => (value + divisor - 1n) / divisor

/** Returns the book after an event of the vault. */
function bookVaultEvent(book: VaultBook, { name, args }: VaultEvent): VaultBook {
  const amountOf = (key: string) => BigInt(args[key] as string)
  const isFeePaid = book.feeRecipient !== zeroAddress
  switch (name) {
    case 'Deposit': {
      const assets = amountOf('assets')
      const fee = isFeePaid ? ceilDiv(assets * book.depositFeeBps, BPS) : 0n
      return { ...book, idle: book.idle + assets - fee }
    }
    case 'Withdraw': {
      const assets = amountOf('assets')
      const fee = isFeePaid ? ceilDiv(assets * BPS, BPS - book.withdrawFeeBps) - assets : 0n
      return { ...book, idle: book.idle - assets - fee }
    }
    case 'FeeRetained':
      return { ...book, idle: book.idle + amountOf('fee') }
    case 'Transfer': {
      const value = amountOf('value')
      const minted = args.from === zeroAddress ? value : 0n
      const burned = args.to === zeroAddress ? value : 0n
      return { ...book, shares: book.shares + minted - burned }
    }
    case 'FeesUpdated':
      return {
        ...book,
        depositFeeBps: amountOf('depositFeeBps'),
        withdrawFeeBps: amountOf('withdrawFeeBps'),
        feeRecipient: args.feeRecipient as Address,
      }
    case 'TokenWrittenOffUpdated': {
      const others = book.writtenOff.filter(token => token !== args.token)
      return { ...book, writtenOff: args.writtenOff ? [...others, args.token as Address] : others }
    }
    default:
      return book
  }
}

/** Returns the book after a trade of an agent. A trade on paper moves nothing. */
function bookVaultTrade(book: VaultBook, trade: Trade): VaultBook {
  const { token, capitalMode = CapitalMode.Real, usdcAmount = 0n, tokenAmount = 0n } = trade
  if (capitalMode !== CapitalMode.Real || !isExecution(trade)) return book
  const sign = isPurchase(trade) ? 1n : -1n
  const { [token]: held = 0n, ...others } = book.holdings
  const amount = held + sign * tokenAmount
  return {
    ...book,
    idle: book.idle - sign * usdcAmount,
    holdings: amount === 0n ? others : { ...others, [token]: amount },
  }
}

/** The worth of a vault: USDC base units, and base units of the shares. `sharePrice` is of one whole share. */
type BookWorth = { totalAssets: bigint; idleAssets: bigint; totalShares: bigint; sharePrice: bigint }

/**
 * A whole share, and the virtual shares that bound what inflating the first price costs: six decimals more than USDC.
 */
const WHOLE_SHARE = 10n ** 12n
const VIRTUAL_SHARES = 10n ** 6n

/**
 * Returns the worth of a book. `priceOf` is the token's last price with 8 decimals; without one it counts as nothing.
 */
export function worthOf(
  { idle, shares, holdings, writtenOff }: VaultBook,
  { priceOf, decimalsOf }: { priceOf: (token: Address) => bigint | undefined; decimalsOf: (token: Address) => number },
): BookWorth {
  let totalAssets = idle
  for (const [token, amount] of Object.entries(holdings) as [Address, bigint][]) {
    if (writtenOff.includes(token)) continue
    totalAssets += usdcValue(amount, { price: priceOf(token) ?? 0n, decimals: decimalsOf(token) })
  }
  const sharePrice = (WHOLE_SHARE * (totalAssets + 1n)) / (shares + VIRTUAL_SHARES)
  return { totalAssets, idleAssets: idle, totalShares: shares, sharePrice }
}

/** Returns a book as text. */
export const serializeVault = (book: VaultBook): string =>
  JSON.stringify(book, (_, value) => (typeof value === 'bigint' ? `${value}n` : value))

/** Returns the book of a text. */
export const parseVault = (text: string): VaultBook =>
  JSON.parse(text, (_, value) =>
    typeof value === 'string' && /^-?\d+n$/.test(value) ? BigInt(value.slice(0, -1)) : value,
  )
