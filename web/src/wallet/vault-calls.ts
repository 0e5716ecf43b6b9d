import { type Abi, decodeErrorResult, decodeFunctionResult, encodeFunctionData, type Hex } from 'viem'
import { formatUsdcExactly } from '../format/amounts.ts'
import { followTransaction } from './follow-transaction.ts'
import { type Connected, isDeclined, walletProblem } from './provider.ts'

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

/** The wallet is on another chain than the vault; the transaction was not sent. */
export class WrongChain extends CallRefused {
  readonly actual: number
  constructor(actual: number, expected: number) {
    super(`The wallet is on chain ${actual}, not on chain ${expected} of this service; this transaction was not sent.`)
    this.actual = actual
  }
}

type VaultCall = { chainId: number; to: string; functionName: WriteName; args: Values }
/** Notifies of a transaction that the wallet sent and that is not in a block yet, and why more is not known, if it is not. */
export type OnSent = (hash: Hex, unknownBecause?: string) => void

/**
 * Tries a call, has the wallet send it on the given chain, and resolves with the hash of the mined transaction. Does not
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
  await requireChain() // the person may have switched while the node tried the call
  const params = [{ ...call, chainId: `0x${chainId.toString(16)}` }]
  const hash = (await provider.request({ method: 'eth_sendTransaction', params }).catch(error => {
    if (isDeclined(error)) refuse(error)
    throw new CallRefused(
      `${revertSentence(error) ?? walletProblem(error)} Look in the wallet whether it was sent before you try again.`,
    )
  })) as Hex
  onSent(hash)
  const mined = await followTransaction(provider, { hash, address, chainId }, why => onSent(hash, why), pollMs)
  if (!mined.isSameCall)
    throw new CallRefused(`The wallet replaced transaction ${hash} with another one, ${mined.hash}; nothing was moved.`)
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
