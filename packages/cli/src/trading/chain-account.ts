import { type CarriedPrices, carriedPricesProblem } from '@agent-trading-service/protocol/carried-prices'
import { gasLimitOf } from '@agent-trading-service/protocol/gas-limit'
import {
  type Abi,
  type Address,
  BaseError,
  type ContractFunctionName,
  type ContractFunctionReturnType,
  ContractFunctionRevertedError,
  createWalletClient,
  decodeFunctionResult,
  defineChain,
  encodeFunctionData,
  type Hex,
  http,
  parseAbi,
  publicActions,
  toFunctionSelector,
} from 'viem'
import { priceCarrierAbi } from '../../../../contracts-abi/price-carrier.ts'
import type { SigningOptions } from '../commands/options.ts'
import { Failure } from '../failure.ts'
import { homeFolder } from '../keys/key-folder.ts'
import { openSigner } from '../keys/signer.ts'
import { askToContinue, canAsk } from '../output/ask.ts'
import type { Printer } from '../output/printer.ts'
import { withProgress } from '../output/progress.ts'
import type { Reader } from './create-reader.ts'
import { pinsOf } from './pins.ts'

const POLL_MS = 500
const oracleAbi = parseAbi(['function priceOracle() view returns (address)'])

type ContractCall = { address: Address; abi: Abi; functionName: string; args: readonly unknown[] }

/** A transaction, and what it does in the words of a person, such as "Promote agent 7 to track 1". */
export type ChainCall = ContractCall & {
  does: string
  /** The prices that it brings along, read when it is sent. */
  prices?: PriceBringer | undefined
}

type CarriedToOracle = { oracle: Address; prices: CarriedPrices }

/** Reads what calls bring along: the service chooses the prices, the node names the oracle that verifies them. */
export type PriceBringer = () => Promise<CarriedToOracle>

/**
 * Connects a stored key to the node at `--rpc`, for transactions that the service has no operation for. The registry is
 * that of the first contact with the service. Throws NOT_DEPLOYED, CHAIN_MISMATCH and those of the key.
 */
export async function openChainAccount(options: SigningOptions & { rpc: string }, reads: Reader) {
  const { rpc, url, yes } = options
  const home = homeFolder()
  const { chainId, agentRegistry } = await pinsOf(home, url, reads)
  if (chainId === undefined || agentRegistry === undefined)
    throw new Failure('unavailable', `The service at ${url} names no agent registry.`, {
      code: 'NOT_DEPLOYED',
      remedy: 'Check the URL, or ask the operator.',
    })
  const chain = defineChain({
    id: chainId,
    name: `chain ${chainId}`,
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [rpc] } },
  })
  const signer = openSigner(home, options)
  const client = createWalletClient({ chain, transport: http(rpc), pollingInterval: POLL_MS }).extend(publicActions)
  const given = await client.getChainId()
  if (given !== chainId)
    throw new Failure('mismatch', `The node at --rpc is of chain ${given}; expected ${chainId}. Nothing was sent.`, {
      code: 'CHAIN_MISMATCH',
      remedy: 'Pass a node of the chain that the service is deployed on.',
    })

  /**
   * Returns the newest prices of what a vault holds and of symbols. Without any, the call goes as it is and the
   * contract decides. Throws PRICES_MISMATCH for prices that a transaction should not carry.
   */
  const pricesOf =
    (vault: Address, symbols: readonly string[] = []): PriceBringer =>
    async () => {
      const oracle = await client.readContract({ address: vault, abi: oracleAbi, functionName: 'priceOracle' })
      const asked = { vault, ...(symbols.length > 0 && { symbols: symbols.join(',') }) }
      const prices = await reads.getPriceReports(asked).catch(() => ({ reports: [], feeds: [] }))
      const carried = { reports: prices.reports as Hex[], feeds: prices.feeds as Address[] }
      const problem = carriedPricesProblem(carried, Number((await client.getBlock()).timestamp))
      if (problem === undefined) return { oracle, prices: carried }
      throw new Failure('mismatch', `The service gives prices that do not belong into a transaction: ${problem}.`, {
        code: 'PRICES_MISMATCH',
        remedy: 'Nothing was sent. Do not trust this service, or set the clock of the chain right.',
      })
    }

  /** Reads from a contract at the prices that a transaction would bring along. */
  async function readAt<const abi extends Abi, name extends ContractFunctionName<abi, 'view'>>(
    call: { address: Address; abi: abi; functionName: name; args?: readonly unknown[] },
    prices: PriceBringer,
  ): Promise<ContractFunctionReturnType<abi, 'view', name>> {
    const carried = withPrices({ args: [], ...call }, await prices())
    const result: unknown = await client.readContract(carried as never)
    return (
      carried.functionName === 'withPrices' ? decodeFunctionResult({ ...call, data: result } as never) : result
    ) as ContractFunctionReturnType<abi, 'view', name>
  }

  /** Simulates, shows, asks and sends the calls one after the other. Returns the hash of the last. */
  async function send(printer: Printer, calls: readonly ChainCall[]): Promise<Hex> {
    let transactionHash: Hex = '0x'
    for (const { does, prices, ...call } of calls) {
      const tried = { ...withPrices(call, await prices?.()), account: signer.address }
      await client.simulateContract(tried as never).catch(error => {
        throw toRefusal(does, error)
      })
      printer.note(`${does}: a transaction of ${signer.address} to ${call.address} on chain ${chainId}`)
      if (!yes && canAsk()) await askToContinue('Sign and send?')
      // Read again, because a person may take longer than a price is fresh.
      const transaction = { ...withPrices(call, await prices?.()), account: await signer.unlock() }
      const gas = gasLimitOf(await client.estimateContractGas(transaction as never))
      transactionHash = await client.writeContract({ ...transaction, gas } as never)
      const receipt = await withProgress(
        'Waiting for the block',
        client.waitForTransactionReceipt({ hash: transactionHash }),
      )
      if (receipt.status !== 'success')
        throw new Failure('refused', `"${does}" reverted in ${transactionHash}.`, { code: 'REVERTED' })
    }
    return transactionHash
  }
  return { client, address: signer.address, agentRegistry, pricesOf, readAt, send }
}

/** Returns a call that brings prices along: what it calls is unchanged. Without prices, it is the call itself. */
function withPrices(call: ContractCall, carried: CarriedToOracle | undefined): ContractCall {
  if (carried === undefined || carried.prices.reports.length + carried.prices.feeds.length === 0) return call
  const { reports, feeds } = carried.prices
  const args = [reports, feeds, carried.oracle, encodeFunctionData(call)]
  return { ...call, abi: [...priceCarrierAbi, ...call.abi], functionName: 'withPrices', args }
}

/** `AddressFrozen()` of USDG; USDC says "Blacklistable: account is blacklisted". */
const FROZEN = toFunctionSelector('AddressFrozen()')

/** Names the error of a contract that refuses a call; another failure stays as it is. */
function toRefusal(does: string, error: unknown): unknown {
  const reverted = error instanceof BaseError && error.walk(cause => cause instanceof ContractFunctionRevertedError)
  if (!(reverted instanceof ContractFunctionRevertedError)) return error
  const { errorName, args = [] } = reverted.data ?? {}
  const isBlocked = reverted.signature === FROZEN || (errorName === 'Error' && /blacklisted/.test(`${args[0]}`))
  if (isBlocked)
    return new Failure('refused', `"${does}" is refused by the dollar: its issuer blocked an account that it passes.`, {
      code: 'TOKEN_RESTRICTED',
      remedy: "Nothing was sent. Only the dollar's issuer can lift this.",
    })
  if (errorName === undefined) return error
  return new Failure('refused', `"${does}" is refused by the contract: ${errorName}(${args.join(', ')}).`, {
    code: errorName.replace(/(?<=[a-z0-9])[A-Z]/g, '_$&').toUpperCase(),
    remedy: 'Nothing was sent. `ats vault` and `ats vault requests` show the present state.',
  })
}
