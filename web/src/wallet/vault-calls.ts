import { type Abi, decodeErrorResult, encodeFunctionData, type Hex } from 'viem'
import { formatUsdcExactly } from '../format/amounts.ts'
import { followTransaction, type SentCall } from './follow-transaction.ts'
import {
  type Connected,
  isDeclined,
  isSameAddress,
  type Provider,
  Stopped,
  untilStopped,
  walletProblem,
} from './provider.ts'

// The part of contracts-abi/mandate-vault.ts that the desk calls; the whole would be a fifth of the page's script. The
// vault is an ERC-20 token too, so it also has what is called on USDC: balance, allowance, approval.

const call = (name: string, ...types: ('address' | 'uint256')[]) => ({
  type: 'function' as const,
  name,
  inputs: types.map((type, index) => ({ type, name: `${index}` })),
  outputs: [{ type: name === 'approve' ? 'bool' : 'uint256', name: '' }],
  stateMutability: 'nonpayable' as const,
})
const refusal = (name: string, ...types: ('address' | 'uint256')[]) => ({
  type: 'error' as const,
  name,
  inputs: types.map((type, index) => ({ type, name: `${index}` })),
})
const abi: Abi = [
  call('balanceOf', 'address'),
  call('allowance', 'address', 'address'),
  call('lockedShares', 'address'),
  call('priceOracle'),
  call('maxRedeem', 'address'),
  call('maxWithdraw', 'address'),
  call('previewDeposit', 'uint256'),
  call('previewRedeem', 'uint256'),
  call('previewWithdraw', 'uint256'),
  call('approve', 'address', 'uint256'),
  call('deposit', 'uint256', 'address'),
  call('redeem', 'uint256', 'address', 'address'),
  call('withdraw', 'uint256', 'address', 'address'),
  call('requestDeposit', 'uint256', 'address', 'address'),
  call('requestRedeem', 'uint256', 'address', 'address'),
  call('cancelDepositRequest', 'uint256', 'address'),
  call('cancelRedeemRequest', 'uint256', 'address'),
  refusal('RequestTooSmall', 'uint256', 'uint256'),
  refusal('RequestNotPending', 'uint256'),
  refusal('LiquidityPaused'),
  refusal('AddressFrozen'), // of USDG; USDC has a reason in words
  refusal('TradeInProgress'),
  refusal('SharesLocked', 'address', 'uint256', 'uint256'),
  refusal('SharePriceJumped', 'uint256', 'uint256', 'uint256'),
  refusal('ERC20InsufficientBalance', 'address', 'uint256', 'uint256'),
  refusal('ERC20InsufficientAllowance', 'address', 'uint256', 'uint256'),
  refusal('ERC4626ExceededMaxDeposit', 'address', 'uint256', 'uint256'),
  refusal('ERC4626ExceededMaxRedeem', 'address', 'uint256', 'uint256'),
  refusal('ERC4626ExceededMaxWithdraw', 'address', 'uint256', 'uint256'),
]

type ReadName =
  | 'priceOracle'
  | 'balanceOf'
  | 'allowance'
  | 'lockedShares'
  | 'maxRedeem'
  | 'maxWithdraw'
  | 'previewDeposit'
  | 'previewRedeem'
  | 'previewWithdraw'
type WriteName =
  | 'approve'
  | 'deposit'
  | 'redeem'
  | 'withdraw'
  | 'requestDeposit'
  | 'requestRedeem'
  | 'cancelDepositRequest'
  | 'cancelRedeemRequest'
/** Calls whose worth depends on the prices of the vault's tokens. */
const PRICED: readonly string[] = ['deposit', 'redeem', 'withdraw']
type Values = readonly (string | bigint)[]

const encode = (functionName: ReadName | WriteName, args: Values): Hex =>
  encodeFunctionData({ abi, functionName, args })

/** Puts prices around the calldata of a vault's call. */
export type BringPrices = (data: Hex) => Hex
export const asIs: BringPrices = data => data

/** Reads a number from a contract through the wallet's node, at the prices that a transaction would bring along. */
export async function readNumber(
  { wallet }: Connected,
  to: string,
  functionName: ReadName,
  args: Values,
  bring = asIs,
): Promise<bigint> {
  const plain = encode(functionName, args)
  const call = { to, data: bring(plain) }
  const returned = (await wallet.provider.request({ method: 'eth_call', params: [call, 'latest'] })) as Hex
  // `withPrices` returns the number as bytes: offset, length, number.
  return BigInt(call.data === plain ? returned : `0x${returned.slice(130, 194)}`)
}

/** A call that was not sent or that reverted, in a sentence. */
export class CallRefused extends Error {}

/** The wallet is on another chain than the vault; the transaction was not sent. */
export class WrongChain extends CallRefused {
  readonly actual: number
  constructor(actual: number, expected: number) {
    super(`The wallet is on chain ${actual}, not on chain ${expected} of this service; this transaction was not sent.`)
    this.actual = actual
  }
}

/** The wallet is on another account than the one that the call was made up for; the transaction was not sent. */
export class WrongAccount extends CallRefused {
  readonly actual: `0x${string}` | undefined
  constructor(actual: `0x${string}` | undefined, expected: string) {
    super(
      `The wallet is on ${actual === undefined ? 'no account' : `account ${actual}`}, not on ${expected}; this transaction was not sent.`,
    )
    this.actual = actual
  }
}

export type VaultCall = { to: string; functionName: WriteName; args: Values }
export type Sending = {
  /** Ends the wait for a wallet that does not answer. */
  signal?: AbortSignal
  /** Notifies of a transaction that the wallet sent after the wait had ended, or of its refusal. */
  onLate?: (hash: Hex | undefined) => void
  /** Returns the prices that a vault's call brings along. */
  pricesOf?: (wallet: Connected, vault: string) => Promise<BringPrices>
}

/**
 * Tries a call and has the wallet send it from the given account on the given chain. Resolves with the transaction's
 * hash. Throws CallRefused and Stopped.
 */
export async function sendCall(
  current: Connected,
  { to, functionName, args }: VaultCall,
  { signal, onLate, pricesOf }: Sending = {},
): Promise<Hex> {
  const {
    wallet: { provider },
    address,
    chainId,
  } = current
  const refuse = (error: unknown): never => {
    if (error instanceof Stopped) throw error
    throw new CallRefused(revertSentence(error) ?? walletProblem(error))
  }
  const ask = (method: string, ...params: unknown[]) =>
    untilStopped(provider.request({ method, params }), signal).catch(refuse)
  async function requireSame() {
    const actual = Number(await ask('eth_chainId'))
    if (actual !== chainId) throw new WrongChain(actual, chainId)
    const [account] = (await ask('eth_accounts')) as `0x${string}`[]
    if (account === undefined || !isSameAddress(account, address)) throw new WrongAccount(account, address)
  }
  await requireSame()
  const isPriced = pricesOf && PRICED.includes(functionName)
  const bring = isPriced ? await untilStopped(pricesOf(current, to), signal).catch(refuse) : asIs
  const call = { from: address, to, data: bring(encode(functionName, args)) }
  await ask('eth_call', call, 'latest')
  await requireSame() // the person may have switched while the node tried the call
  const params = [{ ...call, chainId: `0x${chainId.toString(16)}` }]
  const sent = provider.request({ method: 'eth_sendTransaction', params }) as Promise<Hex>
  return untilStopped(sent, signal).catch(error => {
    if (error instanceof Stopped) sent.then(onLate, () => onLate?.(undefined))
    if (error instanceof Stopped || isDeclined(error)) return refuse(error)
    throw new CallRefused(`${revertSentence(error) ?? walletProblem(error)} ${LOOK_IN_WALLET}`)
  })
}

export const LOOK_IN_WALLET = 'Look in the wallet whether it was sent before you try again.'

/**
 * Resolves with the hash of the mined transaction. Does not resolve while the outcome is unknown; `onOpen` says why.
 * Throws CallRefused.
 */
export async function outcomeOf(
  provider: Provider,
  sent: SentCall,
  onOpen: (why: string | undefined) => void,
  pollMs = RECEIPT_POLL_MS,
): Promise<Hex> {
  const mined = await followTransaction(provider, sent, onOpen, pollMs)
  if (!mined.isSameCall)
    throw new CallRefused(
      `The wallet replaced transaction ${sent.hash} with another one, ${mined.hash}; nothing was moved.`,
    )
  if (!mined.isSuccess) throw new CallRefused(`Transaction ${mined.hash} reverted; nothing was moved.`)
  return mined.hash
}

const RECEIPT_POLL_MS = 1_000

/** Returns the sentence of a revert in a provider's error; undefined if it has none that is known. */
function revertSentence(error: unknown): string | undefined {
  const data = revertDataIn(error)
  if (data === undefined) return undefined
  try {
    const { errorName, args } = decodeErrorResult({ abi, data })
    if (errorName === 'Error' && /blacklisted/.test(`${args?.[0]}`)) return DOLLAR_BLOCKED
    return SENTENCES[errorName]?.(args as readonly bigint[]) ?? `The vault refuses it: ${errorName}.`
  } catch {
    return undefined
  }
}

const DOLLAR_BLOCKED =
  "The dollar refuses it: its issuer blocked your account or the vault. Only the dollar's issuer can lift this."

const SENTENCES: Record<string, (args: readonly bigint[]) => string> = {
  AddressFrozen: () => DOLLAR_BLOCKED,
  LiquidityPaused: () => 'Deposits and withdrawals of this vault are paused.',
  SharesLocked: () => 'These shares are within their holding time; they redeem once it is over.',
  SharePriceJumped: () => 'The share price has just moved further than the vault allows; try again when it has held.',
  TradeInProgress: () => 'A trade of the vault is in progress; try again.',
  ERC20InsufficientBalance: ([, balance = 0n]) => `The account holds only ${formatUsdcExactly(`${balance}`)} USDC.`,
  ERC20InsufficientAllowance: () => 'The vault may not take that much USDC; approve it first.',
  ERC4626ExceededMaxWithdraw: ([, , max = 0n]) => `At most ${formatUsdcExactly(`${max}`)} USDC can be withdrawn now.`,
  ERC4626ExceededMaxRedeem: () =>
    'That is more than can be redeemed now: shares are locked, or the vault is not idle enough.',
  RequestTooSmall: ([, minimum = 0n]) => `A request is worth at least ${formatUsdcExactly(`${minimum}`)} USDC.`,
  RequestNotPending: () => 'This request has settled or was cancelled.',
  ERC4626ExceededMaxDeposit: () => 'The vault takes no deposit now.',
}

/** Wallets nest the node's error differently: the data is the first hex string of at least four bytes. */
function revertDataIn(error: unknown, depth = 0): Hex | undefined {
  if (typeof error === 'string') return /0x[0-9a-f]{8,}/i.exec(error)?.[0] as Hex | undefined
  if (typeof error !== 'object' || error === null || depth > 4) return undefined
  const { data, error: inner, cause } = error as Record<string, unknown>
  return [data, inner, cause].map(part => revertDataIn(part, depth + 1)).find(found => found !== undefined)
}
