import { type Abi, decodeErrorResult, decodeFunctionResult, encodeFunctionData, type Hex } from 'viem'
import { formatUsdcExactly } from '../format/amounts.ts'
import { type Connected, type Provider, walletProblem } from './provider.ts'

// The part of contracts-abi/mandate-vault.ts that the desk calls; the whole would be a fifth of the page's script. The vault is
// an ERC-20 token too, so it also has what is called on USDC: balance, allowance, approval.

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
  call('maxRedeem', 'address'),
  call('maxWithdraw', 'address'),
  call('previewDeposit', 'uint256'),
  call('previewRedeem', 'uint256'),
  call('approve', 'address', 'uint256'),
  call('deposit', 'uint256', 'address'),
  call('redeem', 'uint256', 'address', 'address'),
  call('withdraw', 'uint256', 'address', 'address'),
  refusal('LiquidityPaused'),
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
  | 'balanceOf'
  | 'allowance'
  | 'lockedShares'
  | 'maxRedeem'
  | 'maxWithdraw'
  | 'previewDeposit'
  | 'previewRedeem'
type WriteName = 'approve' | 'deposit' | 'redeem' | 'withdraw'
type Values = readonly (string | bigint)[]

const encode = (functionName: ReadName | WriteName, args: Values): Hex =>
  encodeFunctionData({ abi, functionName, args })

/** Reads a number from a contract through the wallet's node. */
export async function readNumber(
  { wallet }: Connected,
  to: string,
  functionName: ReadName,
  args: Values,
): Promise<bigint> {
  const call = { to, data: encode(functionName, args) }
  const data = (await wallet.provider.request({ method: 'eth_call', params: [call, 'latest'] })) as Hex
  return decodeFunctionResult({ abi, functionName, data }) as bigint
}

/** A call that was not sent or that reverted, in a sentence. */
export class CallRefused extends Error {}

/** The wallet is on another chain than the vault; nothing was sent. */
export class WrongChain extends CallRefused {
  readonly actual: number
  constructor(actual: number, expected: number) {
    super(`The wallet is on chain ${actual}, not on chain ${expected} of this service; nothing was sent.`)
    this.actual = actual
  }
}

type VaultCall = { chainId: number; to: string; functionName: WriteName; args: Values }
/** Notifies of a transaction that the wallet sent, and again if another one took its nonce. */
export type OnSent = (hash: Hex, isReplaced: boolean) => void

/**
 * Tries a call, has the wallet send it on the given chain, and resolves with its hash once it is in a block. Does not
 * resolve while the outcome is unknown. Throws CallRefused.
 */
export async function sendCall(
  { wallet: { provider }, address }: Connected,
  { chainId, to, functionName, args }: VaultCall,
  onSent: OnSent,
  pollMs = RECEIPT_POLL_MS,
): Promise<Hex> {
  const call = { from: address, to, data: encode(functionName, args) }
  const refuse = (error: unknown): never => {
    throw new CallRefused(revertSentence(error) ?? walletProblem(error))
  }
  async function requireChain() {
    const actual = Number(await provider.request({ method: 'eth_chainId' }).catch(refuse))
    if (actual !== chainId) throw new WrongChain(actual, chainId)
  }
  await requireChain()
  await provider.request({ method: 'eth_call', params: [call, 'latest'] }).catch(refuse)
  const nonce = await noncesUsed(provider, address, 'pending').catch(() => undefined)
  await requireChain() // the person may have switched while the node tried the call
  const params = [{ ...call, chainId: `0x${chainId.toString(16)}` }]
  const hash = (await provider.request({ method: 'eth_sendTransaction', params }).catch(refuse)) as Hex
  onSent(hash, false)
  const status = await receiptStatus(provider, { address, hash, nonce }, () => onSent(hash, true), pollMs)
  if (status !== '0x1') throw new CallRefused(`Transaction ${hash} reverted; nothing was moved.`)
  return hash
}

const RECEIPT_POLL_MS = 1_000
/** A node may count a nonce shortly before it serves the receipt. */
const MIN_POLLS_WITHOUT_RECEIPT = 3

type Sent = { address: string; hash: Hex; nonce: number | undefined }

/**
 * Resolves with the status of a transaction's receipt. An error counts as "not yet". Calls `onReplaced` if the account's
 * nonce has passed that of the transaction, and still waits: only the receipt is certain.
 */
async function receiptStatus(provider: Provider, sent: Sent, onReplaced: () => void, pollMs: number): Promise<string> {
  let { nonce } = sent
  let polls = 0
  async function poll() {
    const receipt = await provider.request({ method: 'eth_getTransactionReceipt', params: [sent.hash] })
    const { status } = (receipt ?? {}) as { status?: string }
    if (status !== undefined) return status
    const transaction = await provider.request({ method: 'eth_getTransactionByHash', params: [sent.hash] })
    // The wallet may have chosen another nonce than the next one.
    if (transaction) nonce = Number((transaction as { nonce: string }).nonce)
    const isPast = nonce !== undefined && (await noncesUsed(provider, sent.address, 'latest')) > nonce
    polls = isPast ? polls + 1 : 0
    if (polls === MIN_POLLS_WITHOUT_RECEIPT) onReplaced()
    return undefined
  }
  for (;;) {
    const status = await poll().catch(() => undefined)
    if (status !== undefined) return status
    await new Promise(resolve => setTimeout(resolve, pollMs))
  }
}

const noncesUsed = async (provider: Provider, address: string, block: 'latest' | 'pending'): Promise<number> =>
  Number(await provider.request({ method: 'eth_getTransactionCount', params: [address, block] }))

/** Returns the sentence of a revert in a provider's error; undefined if it has none that is known. */
function revertSentence(error: unknown): string | undefined {
  const data = revertDataIn(error)
  if (data === undefined) return undefined
  try {
    const { errorName, args } = decodeErrorResult({ abi, data })
    return SENTENCES[errorName]?.(args as readonly bigint[]) ?? `The vault refuses it: ${errorName}.`
  } catch {
    return undefined
  }
}

const SENTENCES: Record<string, (args: readonly bigint[]) => string> = {
  LiquidityPaused: () => 'Deposits and withdrawals of this vault are paused.',
  SharesLocked: () => 'These shares are within their holding time; they redeem once it is over.',
  SharePriceJumped: () => 'The share price has just moved further than the vault allows; try again when it has held.',
  TradeInProgress: () => 'A trade of the vault is in progress; try again.',
  ERC20InsufficientBalance: ([, balance = 0n]) => `The account holds only ${formatUsdcExactly(`${balance}`)} USDC.`,
  ERC20InsufficientAllowance: () => 'The vault may not take that much USDC; approve it first.',
  ERC4626ExceededMaxWithdraw: ([, , max = 0n]) => `At most ${formatUsdcExactly(`${max}`)} USDC can be withdrawn now.`,
  ERC4626ExceededMaxRedeem: () =>
    'That is more than can be redeemed now: shares are locked, or the vault is not idle enough.',
  ERC4626ExceededMaxDeposit: () => 'The vault takes no deposit now.',
}

/** Wallets nest the node's error differently: the data is the first hex string of at least four bytes. */
function revertDataIn(error: unknown, depth = 0): Hex | undefined {
  if (typeof error === 'string') return /0x[0-9a-f]{8,}/i.exec(error)?.[0] as Hex | undefined
  if (typeof error !== 'object' || error === null || depth > 4) return undefined
  const { data, error: inner, cause } = error as Record<string, unknown>
  return [data, inner, cause].map(part => revertDataIn(part, depth + 1)).find(found => found !== undefined)
}
