import { publicChain } from '@agent-trading-service/protocol/known-chain'
import { type Address, concat, createTestClient, type Hex, http, stringToHex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { uniswapV3FactoryAbi } from '../../contracts-abi/uniswap-v3-factory.ts'
import { usdgTokenAbi } from '../../contracts-abi/usdg-token.ts'
import { chosenChain } from '../../devnet/chosen-chain.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { createPayer } from '../../packages/client/src/pay.ts'
import { type RecoverableService, startRecoverableService } from '../support/recoverable-service.ts'
import { runDemo } from './run-demo.ts'

// The embedded chain as `--chain robinhood` starts it: the id of Robinhood Chain, ten blocks a second, a dollar that
// does not tell its signing domain, and several pools for each token.

let devnet: Devnet
let service: RecoverableService
let token: { address: Address; abi: typeof usdgTokenAbi }

beforeAll(async () => {
  devnet = await startDevnet(chosenChain('robinhood'))
  token = { address: devnet.deployment.contracts.USDC, abi: usdgTokenAbi }
  service = await startRecoverableService(devnet.deployment, { DEVELOPMENT_CHAIN: 'embedded', X402_ENABLED: 'true' })
})
afterAll(async () => {
  await service?.remove()
  await devnet?.stop()
})

/** Pays registration fees as any x402 client: it signs in the domain that the service asks for. */
const payFrom = (privateKey: Hex) => {
  const account = privateKeyToAccount(privateKey)
  const terms = { account, chainId: devnet.chainId, asset: token.address, maxAmount: 10_000_000n }
  return createPayer(terms, fetch).fetch
}
const pay: ReturnType<typeof payFrom> = request => payFrom(devnet.deployment.accounts.payer.privateKey)(request)

const setPaused = (isPaused: boolean) =>
  devnet.send(devnet.deployment.accounts.admin, { ...token, functionName: 'setPaused', args: [isPaused] })
const setFrozen = (account: Address, isFrozen: boolean) =>
  devnet.send(devnet.deployment.accounts.admin, { ...token, functionName: 'setFrozen', args: [account, isFrozen] })

it('says that it is embedded, and that it is not Robinhood Chain', async () => {
  expect(await service.get('/')).toMatchObject({ chainId: 4663, chainName: 'Embedded chain, not Robinhood Chain' })
  expect(await devnet.client.getChainId()).toBe(4663)
  expect(token.address).not.toBe(publicChain(4663)?.dollar.address)
})

it('takes registration fees in a dollar that does not tell its domain', async () => {
  await expect(devnet.client.readContract({ ...token, functionName: 'version' })).rejects.toThrow('FacetNotFound')
  await expect(devnet.client.readContract({ ...token, functionName: 'eip712Domain' })).rejects.toThrow('FacetNotFound')
  expect(await service.register('genesis', pay)).toMatchObject({ agentId: expect.stringMatching(/^\d+$/) })
  const { findings } = (await service.readiness()).body
  expect(JSON.stringify(findings ?? [])).not.toContain('USDC does not sign')
})

it('never asks the dollar for its name or version, whatever they are', async () => {
  const node = createTestClient({ mode: 'anvil', transport: http(devnet.rpcUrl) })
  const slot = { address: token.address, index: 3 } as const // OpenZeppelin's `_name`; the domain's is in the code
  const before = (await devnet.client.getStorageAt({ address: token.address, slot: '0x3' })) as Hex
  await node.setStorageAt({ ...slot, value: concat([stringToHex('Bridged', { size: 31 }), '0x0e']) })
  expect(await devnet.client.readContract({ ...token, functionName: 'name' })).toBe('Bridged')
  await service.register('genesis', pay)
  await expect(service.register('genesis', payFrom(generatePrivateKey()))).rejects.toThrow('has less than the fee')
  await node.setStorageAt({ ...slot, value: before })
})

it('names a payment that the issuer of the dollar refuses', async () => {
  const { payer } = devnet.deployment.accounts
  await setFrozen(payer.address, true)
  await expect(service.register('genesis', pay)).rejects.toThrow(/frozen one of the accounts.*TRANSFER_REFUSED/)
  await setFrozen(payer.address, false)
  await setPaused(true)
  const refused = service.register('genesis', pay)
  await expect(refused).rejects.toThrow('paused all transfers')
  await expect(refused).rejects.toThrow('TRANSFER_REFUSED')
  await setPaused(false)
})

it('names a trade that the issuer of the dollar refuses, and trades again after it has relented', async () => {
  const { vaults } = devnet.deployment
  const agent = await service.register('frontier', pay)
  await setFrozen(vaults.frontier as Address, true)
  const intent = await agent.signTrade()
  expect(await service.send(intent)).toMatchObject({
    status: 503,
    body: { code: 'TOKEN_RESTRICTED', details: { account: vaults.frontier, token: token.address } },
  })
  await setFrozen(vaults.frontier as Address, false)
  expect(await service.send(intent)).toMatchObject({ status: 201 })
})

it('buys in the pool that brings the most: neither the first, the empty, the dearest nor one that is not listed', async () => {
  const { contracts, tokens } = devnet.deployment
  const dollarsIn = async (fee: number) => {
    const pool = await devnet.client.readContract({
      address: contracts.UniswapV3Factory,
      abi: uniswapV3FactoryAbi,
      functionName: 'getPool',
      args: [token.address, tokens.META as Address, fee],
    })
    return devnet.client.readContract({ ...token, functionName: 'balanceOf', args: [pool] })
  }
  const before = await Promise.all(TIERS.map(dollarsIn))
  expect(await service.get('/tokens/META/depth?usdcAmount=100')).toMatchObject({ poolFeeBps: 30 })
  const agent = await service.register('frontier', pay)
  devnet.marketMaker.pause()
  const intent = await agent.signTrade({ symbol: 'META', usdcAmount: '100' })
  expect(await service.send(intent)).toMatchObject({ status: 201 })
  const after = await Promise.all(TIERS.map(dollarsIn))
  devnet.marketMaker.resume()
  expect(after.map((dollars, index) => dollars - (before[index] ?? 0n))).toEqual([0n, 0n, 100_000_000n, 0n, 0n])
})
const TIERS = [100, 500, 3_000, 10_000, 950_000]

it('a what-if moves every pool of a token to the price that it tries', async () => {
  const agent = await service.register('frontier', pay)
  const { positionId } = (await service.send(await agent.signTrade({ symbol: 'TSLA', usdcAmount: '100' }))).body
  const { oracle } = await service.get('/tokens/TSLA/depth?usdcAmount=100')
  const { body } = await service.post(`/agents/${agent.agentId}/what-if`, {
    prices: { TSLA: (Number(oracle.priceUsd) * 0.99).toFixed(2) },
    intents: [{ kind: 'reduce', positionId, exitBps: 10_000 }],
  })
  expect(body.intents).toMatchObject([{ executed: true, code: null }])
  // 0.3 % for each of the two trades and 1 % for the price; in a pool that had stayed, the sale would bring 99.4.
  expect(Number(body.intents[0].usdcOut) / 1e6).toBeCloseTo(98.4, 1)
})

it('the demo runs on it, and says that the chain is embedded', async () => {
  const { stdout } = await runDemo(31337, '--chain', 'robinhood')
  expect(stdout).toContain('embedded, chain id 4663; not Robinhood Chain: its money is worthless, its keys are public')
  expect(stdout).toContain('the keeper fires the stop-loss')
  expect(stdout).toMatch(/every step as expected\.\s*$/)
})
