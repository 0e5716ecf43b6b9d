import { gasLimitOf } from '@agent-trading-service/protocol/gas-limit'
import {
  type Abi,
  type Address,
  BaseError,
  ContractFunctionRevertedError,
  createWalletClient,
  defineChain,
  type Hex,
  http,
  publicActions,
  toFunctionSelector,
} from 'viem'
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

/** A transaction, and what it does in the words of a person, such as "Promote agent 7 to track 1". */
export type ChainCall = {
  does: string
  address: Address
  abi: Abi | readonly unknown[]
  functionName: string
  args: readonly unknown[]
}

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

  /** Simulates, shows, asks and sends the calls one after the other. Returns the hash of the last. */
  async function send(printer: Printer, calls: readonly ChainCall[]): Promise<Hex> {
    let transactionHash: Hex = '0x'
    for (const { does, ...call } of calls) {
      const transaction = { ...call, account: signer.address } as never
      await client.simulateContract(transaction).catch(error => {
        throw toRefusal(does, error)
      })
      printer.note(`${does}: a transaction of ${signer.address} to ${call.address} on chain ${chainId}`)
      if (!yes && canAsk()) await askToContinue('Sign and send?')
      const gas = gasLimitOf(await client.estimateContractGas(transaction))
      transactionHash = await client.writeContract({ ...call, account: await signer.unlock(), gas } as never)
      const receipt = await withProgress(
        'Waiting for the block',
        client.waitForTransactionReceipt({ hash: transactionHash }),
      )
      if (receipt.status !== 'success')
        throw new Failure('refused', `"${does}" reverted in ${transactionHash}.`, { code: 'REVERTED' })
    }
    return transactionHash
  }
  return { client, address: signer.address, agentRegistry, send }
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
