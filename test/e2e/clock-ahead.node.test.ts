import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { freePort } from '../../devnet/anvil.ts'
import { type Devnet, startDevnet } from '../../devnet/index.ts'
import { startWorker, type Worker } from '../../devnet/worker.ts'
import { workerVars } from '../../devnet/worker-vars.ts'
import { createClient } from '../../packages/client/src/index.ts'
import { createPayer } from '../../packages/client/src/pay.ts'
import { type Ats, createAts } from '../support/ats.ts'

// What `npm run devnet:time` does to those who use the chain: its clock is weeks ahead of this machine's.

const DAYS_AHEAD = 40
let devnet: Devnet
let worker: Worker
let ats: Ats

beforeAll(async () => {
  const port = await freePort()
  devnet = await startDevnet({ baseUrl: `http://127.0.0.1:${port}` })
  worker = await startWorker({ port, vars: workerVars(devnet.deployment) })
  await devnet.increaseTime(DAYS_AHEAD * 86_400)
  await devnet.refreshPrices()
  ats = createAts({ ATS_URL: worker.url, ATS_KEY: 'trader' })
})
afterAll(async () => {
  ats?.remove()
  await worker?.stop()
  await devnet?.stop()
})

it('a client that reads the chain registers, pays and trades while the clock of the chain is ahead', async () => {
  const { rpcUrl, deployment } = devnet
  const client = createClient({
    baseUrl: worker.url,
    rpcUrl,
    account: privateKeyToAccount(generatePrivateKey()),
  })
  const payer = (maxValiditySeconds?: number) =>
    createPayer({
      account: privateKeyToAccount(deployment.accounts.payer.privateKey),
      chainId: deployment.chainId,
      asset: deployment.contracts.USDC,
      maxAmount: 10_000_000n,
      ...(maxValiditySeconds !== undefined && { maxValiditySeconds }),
    })
  const registration = { vault: 'genesis', name: 'ahead', metadataURI: 'https://agents.example/agent.json' }
  await expect(client.register({ ...registration, payer: payer() })).rejects.toMatchObject({
    remedy: expect.stringContaining('maxValiditySeconds'),
  })
  const { agentId } = await client.register({ ...registration, payer: payer((DAYS_AHEAD + 1) * 86_400) })
  const agent = client.agent(agentId)
  const exits = [{ triggerBps: -800, exitBps: 10_000 }]
  const { positionId } = await agent.open({ symbol: 'NVDA', usdcAmount: '100', exits })
  expect(await agent.close({ positionId: `${positionId}` })).toMatchObject({ agentId, positionId })

  const withoutNode = createClient({ baseUrl: worker.url, account: privateKeyToAccount(generatePrivateKey()) })
  await expect(withoutNode.register({ ...registration, payer: payer() })).rejects.toMatchObject({
    remedy: expect.stringMatching(/rpcUrl|clock/),
  })
})

it('ats with a node registers, pays and trades while the clock of the chain is ahead', async () => {
  const rpc = ['--rpc', devnet.rpcUrl]
  await ats.importKey('trader', generatePrivateKey())
  await ats.importKey('payer', devnet.deployment.accounts.payer.privateKey)
  const register = ['register', '--vault', 'genesis', '--name', 'ahead', '--payer', 'payer']
  expect(JSON.stringify(await ats.failure(register))).toContain('--rpc')
  const { agentId } = await ats.json([...register, ...rpc])
  ats.env = { ...ats.env, ATS_AGENT: agentId }
  const { positionId } = await ats.json(['open', 'NVDA', '100', '--exits', '-800:10000', ...rpc])
  expect(await ats.json(['close', positionId, ...rpc])).toMatchObject({ agentId, positionId })
})
