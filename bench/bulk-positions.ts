import { TriggerType } from '@agent-trading-service/protocol/enums'
import { hashExits, signingTypes } from '@agent-trading-service/protocol/typed-data'
import { type Address, encodeFunctionData, type Hex, numberToHex } from 'viem'
import { tradeRouterAbi } from '../contracts-abi/trade-router.ts'
import type { Devnet } from '../devnet/index.ts'
import type { BenchAgent } from './signed-intents.ts'

/** A position to open with 1 USDC, with a stop-loss that sells everything. */
export type PositionToOpen = { agent: BenchAgent; symbol: string; stopLossBps: number }

const OPEN_GAS = 1_000_000
const BATCH = 200
const BULK_BLOCK_GAS = 2_000_000_000
const BLOCK_GAS = 60_000_000
const LIFETIME_SECONDS = 86_400n

/**
 * Opens positions through the router, in order, with signed intents. The executor's account is impersonated, so its
 * transactions need no signatures.
 */
export function createPositionOpener({ client, deployment }: Devnet) {
  const { contracts, vaults, tokens, accounts } = deployment
  const from = accounts.executor.address
  const nonces = new Map<bigint, bigint>()
  const rpc = <Result>(method: string, params: unknown[]) =>
    client.request<{ Method: string; Parameters: unknown[]; ReturnType: Result }>({ method, params })

  return async function open(positions: readonly PositionToOpen[]): Promise<void> {
    const { name, version, chainId, verifyingContract } = (
      await client.getEip712Domain({ address: contracts.TradeRouter as Address })
    ).domain
    const domain = { name, version, chainId: BigInt(chainId), verifyingContract }
    const deadline = (await client.getBlock()).timestamp + LIFETIME_SECONDS
    let nonce = await client.getTransactionCount({ address: from })
    await rpc('anvil_impersonateAccount', [from])
    await rpc('evm_setBlockGasLimit', [numberToHex(BULK_BLOCK_GAS)])
    let last: Hex = '0x'
    for (let start = 0; start < positions.length; start += BATCH) {
      const calls = await Promise.all(positions.slice(start, start + BATCH).map(dataOf))
      const hashes = await Promise.all(
        calls.map(data =>
          rpc<Hex>('eth_sendTransaction', [
            { from, to: contracts.TradeRouter, data, gas: numberToHex(OPEN_GAS), nonce: numberToHex(nonce++) },
          ]),
        ),
      )
      last = hashes.at(-1) ?? last
    }
    const { status } = await client.waitForTransactionReceipt({ hash: last, timeout: 300_000 })
    await rpc('evm_setBlockGasLimit', [numberToHex(BLOCK_GAS)])
    await rpc('anvil_stopImpersonatingAccount', [from])
    if (status !== 'success') throw new Error('The last position was not opened.')

    async function dataOf({ agent: { agentId, account }, symbol, stopLossBps }: PositionToOpen): Promise<Hex> {
      const agentNonce = nonces.get(agentId) ?? 0n
      nonces.set(agentId, agentNonce + 1n)
      const exits = [{ triggerType: TriggerType.StopLoss, triggerBps: BigInt(stopLossBps), exitBps: 10_000 }]
      const terms = {
        agentId,
        vault: vaults.genesis as Address,
        token: tokens[symbol] as Address,
        usdcAmount: 1_000_000n,
        minTokenOut: 0n,
        maxSlippageBps: 100,
      }
      const bound = { deadline, nonce: agentNonce }
      const message = { ...terms, exitsHash: hashExits(exits), ...bound }
      const signature = await account.signTypedData({
        domain,
        types: signingTypes,
        primaryType: 'OpenPosition',
        message,
      })
      return encodeFunctionData({
        abi: tradeRouterAbi,
        functionName: 'openPosition',
        args: [{ ...terms, exits, ...bound }, signature],
      })
    }
  }
}
