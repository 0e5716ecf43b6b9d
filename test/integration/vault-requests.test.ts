import { env } from 'cloudflare:workers'
import { type Address, createPublicClient, erc20Abi, type Hex, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { beforeAll, describe, expect, it } from 'vitest'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { requestQueueAbi } from '../../contracts-abi/request-queue.ts'
import { usdcTokenAbi } from '../../contracts-abi/usdc-token.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { readTree } from '../../src/chain/read-tree.ts'
import { parseConfig } from '../../src/config/config.ts'
import { createContext } from '../../src/context.ts'
import { queueCalls, settleRequests } from '../../src/scheduled/settle-requests.ts'
import { chain, FRONTIER, newTrader, openPosition } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { call, deployment } from '../support/surfaces.ts'

// The frontier vault holds NVDA, so its requests wait for a price of NVDA.

const { contracts, accounts } = deployment
const saver = accounts.admin
const client = createPublicClient({ transport: retryLatest(http(deployment.rpcUrl)) })
const ASSETS = 50_000_000n
const requests = async (id = 'frontier'): Promise<Body> => {
  const { status, body } = await call('listVaultRequests', { id })
  expect({ status, body }).toMatchObject({ status: 200 })
  return body
}
async function settle() {
  const context = createContext(parseConfig(vars), env)
  const { values } = await readTree(context.chain, queueCalls(context.chain))
  await settleRequests(context, values)
}

const vars = workerVars(deployment)
const updater = privateKeyToAccount(vars.ORACLE_UPDATER_PRIVATE_KEY as Hex).address
const updaterTransactions = () => client.getTransactionCount({ address: updater })

let queue: Address
beforeAll(async () => {
  await openPosition(await newTrader({ vault: FRONTIER }), { symbol: 'NVDA', usdcAmount: '100' })
  queue = (await requests()).queue
  const usdc = contracts.USDC as Hex
  await chain.send(saver, {
    address: usdc,
    abi: usdcTokenAbi,
    functionName: 'mint',
    args: [saver.address, 4n * ASSETS],
  })
  for (const spender of [FRONTIER, queue])
    await chain.send(saver, { address: usdc, abi: erc20Abi, functionName: 'approve', args: [spender, 4n * ASSETS] })
})
const requestDeposit = () =>
  chain.send(saver, {
    address: queue,
    abi: requestQueueAbi,
    functionName: 'requestDeposit',
    args: [ASSETS, saver.address, saver.address],
  })

describe('the requests of a vault', () => {
  it('the requests of a vault wait for a price observed after them, and the cron trigger settles them at the first', async () => {
    await requestDeposit()
    const { deposits, redemptions } = await requests()
    expect(deposits).toEqual([
      { requestId: expect.any(String), controller: saver.address, madeAt: expect.any(String), assets: `${ASSETS}` },
    ])
    expect(redemptions).toEqual([])
    const sent = await updaterTransactions()
    await settle()
    expect(await updaterTransactions()).toBe(sent)
    expect((await requests()).deposits).toEqual(deposits)

    const shares = () =>
      client.readContract({ address: FRONTIER, abi: mandateVaultAbi, functionName: 'balanceOf', args: [saver.address] })
    const before = await shares()
    await chain.increaseTime(1)
    await chain.refreshPrices()
    const ready = await requests()
    expect(BigInt(ready.settleableBefore)).toBeGreaterThan(BigInt(deposits[0].madeAt))
    await settle()
    expect((await requests()).deposits).toEqual([])
    expect(await shares()).toBeGreaterThan(before)
  })

  it('a redemption waits in its place, and whoever cancelled a request is paid back and passed over', async () => {
    const vault = { address: FRONTIER, abi: mandateVaultAbi } as const
    const shares = (await client.readContract({ ...vault, functionName: 'balanceOf', args: [saver.address] })) / 2n
    await chain.increaseTime(60) // the holding time, and the minute in which the cron trigger settled
    await chain.send(saver, { ...vault, functionName: 'approve', args: [queue, shares] })
    const at = { address: queue, abi: requestQueueAbi } as const
    await chain.send(saver, { ...at, functionName: 'requestRedeem', args: [shares, saver.address, saver.address] })
    await requestDeposit()
    const { deposits, redemptions } = await requests()
    expect(redemptions).toEqual([
      { requestId: '1', controller: saver.address, madeAt: expect.any(String), shares: `${shares}` },
    ])
    const usdcOf = () =>
      client.readContract({
        address: contracts.USDC as Hex,
        abi: erc20Abi,
        functionName: 'balanceOf',
        args: [saver.address],
      })
    const before = await usdcOf()
    const cancel = [BigInt(deposits[0].requestId), saver.address] as const
    await chain.send(saver, { ...at, functionName: 'cancelDepositRequest', args: cancel })
    expect((await usdcOf()) - before).toBe(ASSETS)
    await chain.increaseTime(1)
    await chain.refreshPrices()
    await settle()
    expect(await requests()).toMatchObject({ deposits: [], redemptions: [], omitted: 0 })
    expect(await usdcOf()).toBeGreaterThan(before + ASSETS)
  })

  it('the requests of an unknown vault are not found', async () => {
    const { status, body } = await call('listVaultRequests', { id: 'nowhere' })
    expect({ status, code: body.code }).toEqual({ status: 404, code: 'VAULT_NOT_FOUND' })
  })
})
