import { env } from 'cloudflare:workers'
import { createPublicClient, http } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { describe, expect, it } from 'vitest'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { erc8004IdentityRegistryAbi } from '../../contracts-abi/erc8004-identity-registry.ts'
import type { Account } from '../../devnet/accounts.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import { chain, newTrader, registrationOf, sign } from '../support/actors.ts'
import { appWith, type CallResult, call, callOverHttp, deployment, type Input } from '../support/surfaces.ts'

const { contracts, accounts } = deployment
const client = createPublicClient({ transport: retryLatest(http(deployment.rpcUrl)) })
const identities = { address: contracts.ERC8004IdentityRegistry, abi: erc8004IdentityRegistryAbi } as const
const account = (index: number): Account => {
  const found = accounts.agents.at(index)
  if (found === undefined) throw new Error('the devnet has funded agent accounts')
  return found
}
const [holder, other, third] = [account(-1), account(-2), account(-3)]

const idsOf = ({ body }: CallResult) => body.agents.map(({ agentId }: { agentId: string }) => agentId)
const givenOf = ({ body }: CallResult) => body.given.map(({ agentId }: { agentId: string }) => agentId)
const ownedBy = (owner: string) => call('listAgentsByOwner', { owner })

/** Registers an agent of one of the chain's funded accounts. */
async function agentOf({ privateKey }: Account, changes: Input = {}): Promise<string> {
  const { body } = await call('registerAgent', await registrationOf(privateKeyToAccount(privateKey), changes))
  return body.agentId
}

/** Mints an ERC-8004 identity to an account and returns its id. */
async function newIdentity(account: Account): Promise<bigint> {
  const receipt = await chain.send(account, { ...identities, functionName: 'register', args: [] })
  const [, , id] = receipt.logs.flatMap(({ topics }) => (topics.length === 4 ? [topics] : []))[0]?.slice(1) ?? []
  return BigInt(id ?? 0)
}

const transfer = (from: Account, to: Account, id: bigint) =>
  chain.send(from, { ...identities, functionName: 'transferFrom', args: [from.address, to.address, id] })

/** Returns the signed body of a link, from its quote. */
async function linkOf(account: Account, agentId: string, erc8004AgentId: bigint, changes: Input = {}) {
  const { body } = await call('getErc8004LinkQuote', { agentId, erc8004AgentId: `${erc8004AgentId}` })
  const typedData = { ...body.typedData, message: { ...body.typedData.message, ...changes } }
  const signature = await sign(privateKeyToAccount(account.privateKey), typedData)
  return { agentId, ...body.body, ...changes, signature }
}

describe('the agents of an owner', () => {
  it('the agents of an owner are those it registered; those that others gave it are apart until it acts on them', async () => {
    const mine = await agentOf(holder)
    const second = await agentOf(holder)
    const received = await agentOf(other)
    const give = (from: Account, to: Account, id: string) =>
      chain.send(from, {
        address: contracts.AgentRegistry,
        abi: agentRegistryAbi,
        functionName: 'transferAgentOwnership',
        args: [BigInt(id), to.address],
      })
    await give(other, holder, received)
    await give(holder, third, second)
    const answer = await ownedBy(holder.address.toLowerCase())
    expect(idsOf(answer)).toContain(mine)
    for (const id of [received, second]) expect(idsOf(answer)).not.toContain(id)
    expect(givenOf(answer)).toContain(received)
    expect(answer.body).toMatchObject({
      owner: holder.address,
      agentRegistry: contracts.AgentRegistry,
      count: idsOf(answer).length,
    })
    for (const { agent } of answer.body.agents) expect(agent.owner).toBe(holder.address)
    await give(third, holder, second)
    expect(givenOf(await ownedBy(holder.address)).filter((id: string) => id === second)).toHaveLength(1)
    expect(idsOf(await ownedBy(third.address))).not.toContain(second)
    await chain.send(holder, {
      address: contracts.AgentRegistry,
      abi: agentRegistryAbi,
      functionName: 'updateAgentMetadata',
      args: [BigInt(received), 'https://a.example/mine'],
    })
    const used = await ownedBy(holder.address)
    expect(idsOf(used)).toContain(received)
    expect(givenOf(used)).not.toContain(received)
  })

  it('the newest twenty agents that others gave to an owner are shown apart, however many there are', async () => {
    const rival = privateKeyToAccount(generatePrivateKey()).address
    const ids: string[] = []
    for (let count = 0; count < 22; count++) {
      const id = await agentOf(other, { name: `scam ${count}` })
      ids.push(id)
      await chain.send(other, {
        address: contracts.AgentRegistry,
        abi: agentRegistryAbi,
        functionName: 'transferAgentOwnership',
        args: [BigInt(id), rival],
      })
    }
    const { body } = await ownedBy(rival)
    expect(body).toMatchObject({ count: 0, agents: [], hasMoreGiven: true })
    expect(body.given.map(({ agentId }: Input) => agentId)).toEqual(ids.slice(-20).toReversed())
  })

  it('the agents of an owner can be an empty list', async () => {
    const { address } = privateKeyToAccount(generatePrivateKey())
    expect(await ownedBy(address)).toMatchObject({ status: 200, body: { count: 0, agents: [] } })
  })

  it('the agents of an owner are requested by a valid address', async () => {
    const wrong = `${holder.address.slice(0, -1)}${holder.address.endsWith('A') ? 'a' : 'A'}`
    for (const owner of ['0x12', 'me', wrong])
      expect(await ownedBy(owner)).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } })
  })
})

describe('agents by name', () => {
  // HTTP only: the search by name is for people, and no tool.
  const find = (name: string) => callOverHttp('listAgentsByName', { name })

  it('agents by name are found by the beginning of any word, in any case, as soon as they are registered', async () => {
    const agentId = await agentOf(holder, { name: 'Zephyr: Quarto-Breakout' })
    for (const name of ['zeph', 'QUARTO', 'breakout', 'quarto br', 'zephyr quarto-breakout'])
      expect(idsOf(await find(name)), name).toEqual([agentId])
    for (const name of ['ephyr', 'breakout quarto', 'zephyrs']) expect(idsOf(await find(name)), name).toEqual([])
    expect((await find('zeph')).body.agents[0].agent.name).toBe('Zephyr: Quarto-Breakout')
    expect(await find('---')).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } })
  })

  it('agents by name are at most twenty, and those of the index too', async () => {
    const found = idsOf(await find('a'))
    expect(found.length).toBeLessThanOrEqual(20)
    expect(new Set(found).size).toBe(found.length)
    await env.HISTORY_INDEXER.getByName(`${deployment.chainId}`).catchUp()
    expect(idsOf(await find('quarto'))).toHaveLength(1)
  })
})

describe('an ERC-8004 identity', () => {
  it('an ERC-8004 identity is linked once, by its holder, and then leads to its agent', async () => {
    const id = await newIdentity(holder)
    const agentId = await agentOf(holder)
    expect(await call('getAgentByErc8004', { erc8004AgentId: `${id}` })).toMatchObject({
      status: 404,
      body: { code: 'NO_AGENT_FOR_ERC8004' },
    })
    const body = await linkOf(holder, agentId, id)
    const linked = await call('linkErc8004', body)
    expect(linked).toMatchObject({
      status: 201,
      body: { agentId, agent: { hasERC8004Identity: true, erc8004OwnerCurrent: true, erc8004AgentId: `${id}` } },
    })
    const receipt = await client.getTransactionReceipt({ hash: linked.body.transactionHash })
    expect(receipt.from).toBe(accounts.relayer.address.toLowerCase())

    const again = await call('linkErc8004', body)
    expect(again).toMatchObject({ status: 200, body: { transactionHash: linked.body.transactionHash } })
    expect((await call('getAgentByErc8004', { erc8004AgentId: `${id}` })).body).toMatchObject({
      agentId,
      agent: { owner: holder.address },
      agentRegistry: contracts.AgentRegistry,
    })
    const twice = await call('linkErc8004', await linkOf(holder, agentId, id))
    expect(twice).toMatchObject({ status: 409, body: { code: 'ERC8004_ALREADY_LINKED' } })
    const rival = await agentOf(holder)
    expect(await call('linkErc8004', await linkOf(holder, rival, id))).toMatchObject({
      status: 409,
      body: { code: 'ERC8004_ALREADY_LINKED' },
    })
  })

  it('an ERC-8004 identity shows that its holder has changed', async () => {
    const id = await newIdentity(holder)
    const agentId = await agentOf(holder)
    expect((await call('linkErc8004', await linkOf(holder, agentId, id))).status).toBe(201)
    await transfer(holder, other, id)
    const { body } = await call('getAgentByErc8004', { erc8004AgentId: `${id}` })
    expect(body.agent).toMatchObject({ hasERC8004Identity: true, erc8004OwnerCurrent: false })
  })

  it('an ERC-8004 identity can be linked at registration', async () => {
    const id = await newIdentity(holder)
    const agentId = await agentOf(holder, { linkERC8004: true, erc8004AgentId: `${id}` })
    expect((await call('getAgentByErc8004', { erc8004AgentId: `${id}` })).body.agentId).toBe(agentId)
  })

  it('an ERC-8004 identity is not linked if it does not exist or another account holds it', async () => {
    const agentId = await agentOf(holder)
    const missing = await call('linkErc8004', await linkOf(holder, agentId, 999_999n))
    expect(missing).toMatchObject({ status: 404, body: { code: 'ERC8004_IDENTITY_NOT_FOUND' } })
    const foreign = await call('linkErc8004', await linkOf(holder, agentId, await newIdentity(other)))
    expect(foreign).toMatchObject({ status: 400, body: { code: 'ERC8004_OWNER_MISMATCH' } })
  })

  it.each([
    ['another signer', other, {}, 'INVALID_SIGNATURE'],
    ['a deadline that has passed', holder, { deadline: '1' }, 'EXPIRED_DEADLINE'],
    ['a deadline in milliseconds', holder, { deadline: `${Date.now() + 600_000}` }, 'DEADLINE_IN_MILLISECONDS'],
  ])('an ERC-8004 identity is not linked with %s', async (_, signer, changes, code) => {
    const trader = await agentOf(holder)
    const body = await linkOf(signer, trader, 0n, changes)
    expect(await call('linkErc8004', body)).toMatchObject({ status: 400, body: { code } })
  })

  it('an ERC-8004 identity is not linked with another nonce, which the error names', async () => {
    const agentId = await agentOf(holder)
    const { body } = await call('getErc8004LinkQuote', { agentId, erc8004AgentId: '0' })
    const message = { ...body.typedData.message, nonce: `${BigInt(body.nonce) + 1n}` }
    const signature = await sign(privateKeyToAccount(holder.privateKey), { ...body.typedData, message })
    expect(await call('linkErc8004', { agentId, ...body.body, signature })).toMatchObject({
      status: 400,
      body: { code: 'INVALID_SIGNATURE', details: { mistake: 'otherNonce' } },
    })
  })

  it('an ERC-8004 identity responds 404 for an unknown agent, and 503 without a relayer', async () => {
    const body = { agentId: '999999', erc8004AgentId: '1', deadline: '99999999999', signature: `0x${'11'.repeat(65)}` }
    expect(await call('linkErc8004', body)).toMatchObject({ status: 404, body: { code: 'AGENT_NOT_FOUND' } })
    expect(await call('getErc8004LinkQuote', { agentId: '999999' })).toMatchObject({ status: 404 })
    const { agentId } = await newTrader()
    const app = appWith({ RELAYER_PRIVATE_KEY: undefined })
    expect(await call('linkErc8004', { ...body, agentId }, app)).toMatchObject({
      status: 503,
      body: { code: 'RELAYER_NOT_CONFIGURED' },
    })
  })
})
