import { encodeFunctionData, type Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, it } from 'vitest'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { connect } from '../../devnet/sender.ts'
import { newTrader, openPosition } from '../support/actors.ts'
import { call, deployment } from '../support/surfaces.ts'

const client = connect(deployment.rpcUrl, deployment.chainId)

/** Sends a call without estimating its gas, so that it is mined although it reverts. */
async function sendUnchecked(to: Hex, data: Hex): Promise<Hex> {
  const account = privateKeyToAccount(deployment.accounts.keeper.privateKey)
  const serializedTransaction = await account.signTransaction({
    type: 'eip1559',
    chainId: deployment.chainId,
    nonce: await client.getTransactionCount({ address: account.address }),
    to,
    data,
    gas: 1_000_000n,
    maxFeePerGas: 1_000_000_000_000n,
    maxPriorityFeePerGas: 0n,
  })
  return client.sendRawTransaction({ serializedTransaction })
}

describe('a transaction', () => {
  it('a transaction that reverted has the error of the contract, also after the node has dropped the state before it', async () => {
    const positionId = BigInt(await openPosition(await newTrader()))
    const txHash = await sendUnchecked(
      deployment.contracts.TradeRouter,
      encodeFunctionData({ abi: tradeRouterAbi, functionName: 'executeExit', args: [positionId] }),
    )
    const { blockNumber } = await client.waitForTransactionReceipt({ hash: txHash })
    await expect.poll(() => client.getBlockNumber(), { timeout: 30_000 }).toBeGreaterThan(blockNumber + 2n)

    const { status, body } = await call('getTransaction', { txHash })
    expect({ status, body }).toMatchObject({
      status: 200,
      body: {
        status: 'reverted',
        blockNumber: `${blockNumber}`,
        from: deployment.accounts.keeper.address,
        to: deployment.contracts.TradeRouter,
        error: { code: 'TRIGGER_NOT_MET' },
      },
    })
  })

  it('a transaction that reverted without a reason is reported as reverted', async () => {
    const txHash = await sendUnchecked(deployment.contracts.TradeRouter, '0xdeadbeef')
    await client.waitForTransactionReceipt({ hash: txHash })
    const { body } = await call('getTransaction', { txHash })
    expect(body).toMatchObject({ status: 'reverted', error: { code: 'INTENT_REFUSED' } })
  })
})
