import { encodeFunctionData, type Hex, hashTypedData, type TypedDataDefinition } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, it } from 'vitest'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { connect } from '../../devnet/sender.ts'
import { chain, newTrader, openPosition, signedIntent, submit } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { depositFor, sendAsOwner } from '../support/owner.ts'
import { newOwner, ownedBy } from '../support/owner-calls.ts'
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

  it('a transaction says what it asked for, for whom and with which result, in words', async () => {
    const owner = await newOwner()
    const trader = await ownedBy(owner, await newTrader({ vault: 'frontier' }))
    const { agentId } = trader
    const words = async (txHash: Hex) => {
      const { body } = await call('getTransaction', { txHash })
      const inWords = (list: Body[]) =>
        list.map(({ title, terms }) => [title, Object.fromEntries(terms.map(({ name, value }: Body) => [name, value]))])
      return { calls: inWords(body.calls), effects: inWords(body.effects) }
    }
    const open = await submit(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '50' })
    expect((await words(open.body.transactionHash)).calls.at(-1)).toEqual([
      'Buy a token as a new position',
      expect.objectContaining({ agent: agentId, token: 'NVDA', vault: 'frontier', amount: '50.00 USDC' }),
    ])
    const mandate = { agentId, mode: 'reduceOnly', maxTradeUsdc: '25' }
    const set = await sendAsOwner(owner, 'setMandate', mandate)
    const limits = { agent: agentId, 'the agent': 'may only reduce and close', 'one purchase': 'at most 25.00 USDC' }
    const { calls, effects } = await words(set.body.transactionHash)
    expect(calls).toEqual([['Replace the whole mandate of an agent', expect.objectContaining(limits)]])
    expect(effects).toContainEqual(['Mandate updated', expect.objectContaining({ ...limits, owner: owner.address })])
    const deposited = await depositFor({ account: owner }, 30_000_000n)
    expect(await words(deposited)).toEqual({
      calls: [['Deposit USDC for vault shares', { vault: 'genesis', amount: '30.00 USDC', receiver: owner.address }]],
      effects: expect.arrayContaining([
        ['USDC deposited for vault shares', expect.objectContaining({ amount: '30.00 USDC', owner: owner.address })],
      ]),
    })
    const { transactionHash } = await chain.setPrice('COIN', '260')
    expect((await words(transactionHash)).effects).toContainEqual([
      'Price updated',
      expect.objectContaining({ token: 'COIN', price: '260 USD' }),
    ])
  })

  it('an intent says what was signed in the words of its transaction', async () => {
    const trader = await newTrader()
    const positionId = await openPosition(trader)
    const signed = await signedIntent(trader, 'submitReduceIntent', { positionId, exitBps: 2500 })
    const { body: receipt } = await call('submitReduceIntent', signed)
    const { body: transaction } = await call('getTransaction', { txHash: receipt.transactionHash })
    const { body: quote } = await call('getReduceIntentQuote', { agentId: trader.agentId, positionId, exitBps: 2500 })
    const digest = hashTypedData({
      ...quote.typedData,
      message: { ...quote.typedData.message, deadline: signed.deadline, nonce: signed.nonce },
    } as TypedDataDefinition)
    const { body: intent } = await call('getIntent', { digest })
    expect(intent.calls.at(-1)).toEqual(transaction.calls.at(-1))
    expect(intent.calls.at(-1)).toMatchObject({
      contract: 'TradeRouter',
      name: 'reducePosition',
      title: 'Sell from a position',
      terms: expect.arrayContaining([{ field: 'exitBps', name: 'share to sell', value: '25 % of the position' }]),
    })
  })
})
