import { hexToBigInt, type TypedDataDefinition } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { erc8004IdentityRegistryAbi } from '../contracts-abi/erc8004-identity-registry.ts'
import type { Account } from '../devnet/accounts.ts'
import type { Devnet } from '../devnet/index.ts'
import { createClient } from '../packages/client/src/index.ts'
import { createPayer } from '../packages/client/src/pay.ts'
import { type Json, pollUntil } from './demo-service.ts'

const WEEK_SECONDS = 604_800
/** The first Monday after the Unix epoch, in Unix seconds. */
const FIRST_MONDAY = 345_600
/** More blocks than the service waits for until a block is final. */
const FINAL_BLOCKS = '0x50'

/**
 * Lets an agent with real capital and an ERC-8004 identity trade until its week ends and the service has reported it.
 * Returns the path of the week's feedback file.
 */
export async function endExampleWeek(devnet: Devnet, serviceUrl: string): Promise<string> {
  const { accounts, contracts, vaults } = devnet.deployment
  const holder = accounts.agents[3] as Account
  const account = privateKeyToAccount(holder.privateKey)
  const payerAccount = privateKeyToAccount(accounts.payer.privateKey)
  const payer = createPayer({
    account: payerAccount,
    chainId: devnet.chainId,
    asset: contracts.USDC,
    maxAmount: 1_000_000n,
  })
  const client = createClient({ baseUrl: serviceUrl, account, rpcUrl: devnet.rpcUrl })
  const read = async (path: string): Promise<Json> => (await fetch(serviceUrl + path)).json()
  const rpc = (method: string, ...params: unknown[]) => devnet.client.request({ method, params } as never)

  const registered = await client.register({
    vault: vaults.frontier as `0x${string}`,
    name: 'frontier-1',
    metadataURI: 'https://agents.example/frontier-1.json',
    payer,
  })
  const { agentId } = registered
  const receipt = await devnet.send(holder, {
    address: contracts.ERC8004IdentityRegistry,
    abi: erc8004IdentityRegistryAbi,
    functionName: 'register',
    args: [],
  })
  const minted = receipt.logs.find(({ topics }) => topics.length === 4)
  const link = `/agents/${agentId}/erc8004/link`
  const quote = await read(`${link}/quote?erc8004AgentId=${hexToBigInt(minted?.topics[3] ?? '0x0')}`)
  const { EIP712Domain: _, ...types } = quote.typedData.types
  const signature = await account.signTypedData({ ...quote.typedData, types } as TypedDataDefinition)
  await fetch(serviceUrl + link, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...quote.body, signature }),
  })
  await client
    .agent(agentId)
    .open({ symbol: 'NVDA', usdcAmount: '250', exits: [{ triggerBps: -900, exitBps: 10_000 }] })

  const runCron = () => fetch(`${serviceUrl}/cdn-cgi/handler/scheduled`)
  await rpc('anvil_mine', FINAL_BLOCKS, '0x1')
  await runCron()
  const { timestamp } = await devnet.client.getBlock()
  const weekStart = Math.floor((Number(timestamp) - FIRST_MONDAY) / WEEK_SECONDS) * WEEK_SECONDS + FIRST_MONDAY
  await devnet.increaseTime(weekStart + WEEK_SECONDS + 3_600 - Number(timestamp))
  await devnet.refreshPrices()
  const path = `/agents/${agentId}/feedback/${weekStart}`
  await pollUntil(
    async () => {
      await rpc('anvil_mine', FINAL_BLOCKS, '0x1')
      await runCron()
      return read(path)
    },
    ({ code }) => code === undefined,
  )
  return path
}
