import {
  type Address,
  createTestClient,
  createWalletClient,
  encodeErrorResult,
  getAddress,
  type Hex,
  http,
  pad,
  parseAbi,
  publicActions,
} from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { afterEach, describe, expect, it, vi } from 'vitest'
import bytecode from '../../contracts/bytecode.json'
import { smartAccountAbi } from '../../contracts-abi/smart-account.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import { newTrader, openPosition, registrationOf, sign, signedIntent, submit, type Trader } from '../support/actors.ts'
import { gasSince, newestBlock } from '../support/faithless-payer.ts'
import { newOwnedTrader, sendAsOwner, signedByOwner } from '../support/owner.ts'
import { appWith, call, callOverHttp, deployment } from '../support/surfaces.ts'

// Agents whose signer or owner is a contract (ERC-1271), or a key whose account has code (EIP-7702).

const client = createTestClient({
  mode: 'anvil',
  pollingInterval: 100,
  transport: retryLatest(http(deployment.rpcUrl)),
}).extend(publicActions)
const funded = deployment.accounts.agents[7] as { privateKey: Hex }
const wallet = createWalletClient({
  account: privateKeyToAccount(funded.privateKey),
  chain: {
    id: deployment.chainId,
    name: 'devnet',
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [deployment.rpcUrl] } },
  },
  transport: retryLatest(http(deployment.rpcUrl)),
})

async function deployAccount(owner: Address): Promise<Address> {
  const hash = await wallet.deployContract({
    abi: smartAccountAbi,
    bytecode: (bytecode as unknown as { SmartAccount: Hex }).SmartAccount,
    args: [owner],
  })
  const { contractAddress } = await client.waitForTransactionReceipt({ hash })
  return getAddress(contractAddress as Address)
}

/** Returns an account with the address of a contract that signs with its owner's key. */
const signingFor = (address: Address, owner: PrivateKeyAccount) => ({ ...owner, address }) as PrivateKeyAccount

describe('a contract as signer', () => {
  it('a contract as signer registers, trades and gets the same response to a body that is posted again', async () => {
    const owner = privateKeyToAccount(generatePrivateKey())
    const account = signingFor(await deployAccount(owner.address), owner)
    const body = await registrationOf(account)
    const first = await call('registerAgent', body)
    expect(first).toMatchObject({ status: 201 })
    const again = await call('registerAgent', body)
    expect(again).toMatchObject({ status: 200, body: { agentId: first.body.agentId } })

    const trader = { agentId: first.body.agentId, account }
    const positionId = await openPosition(trader, { usdcAmount: '40' })
    const intent = await signedIntent(trader, 'submitReduceIntent', { positionId, exitBps: 10000 })
    const closed = await call('submitReduceIntent', intent)
    expect(closed.status).toBe(201)
    expect((await call('submitReduceIntent', intent)).body).toEqual(closed.body)
  })

  it('a contract as signer is rejected if its owner did not sign', async () => {
    const owner = privateKeyToAccount(generatePrivateKey())
    const stranger = privateKeyToAccount(generatePrivateKey())
    const account = signingFor(await deployAccount(owner.address), stranger)
    expect(await call('registerAgent', await registrationOf(account))).toMatchObject({
      status: 400,
      body: { code: 'INVALID_SIGNATURE' },
    })
  })
})

describe('a contract as owner', () => {
  it('a contract as owner lists the webhooks of its agent', async () => {
    const [key, signer] = [privateKeyToAccount(generatePrivateKey()), privateKeyToAccount(generatePrivateKey())]
    const owner = signingFor(await deployAccount(key.address), key)
    const { agentId } = await newOwnedTrader(signer, owner)
    const { body } = await call('getWebhookListQuote', { agentId })
    expect(body.signers).toEqual([owner.address, signer.address])
    const signature = await sign(key, body.typedData)
    expect(await call('listWebhooks', { agentId, ...body.body, signature })).toMatchObject({
      status: 200,
      body: { agentId, webhooks: [] },
    })
    const forged = await sign(privateKeyToAccount(generatePrivateKey()), body.typedData)
    expect((await call('listWebhooks', { agentId, ...body.body, signature: forged })).body.code).toBe(
      'INVALID_SIGNATURE',
    )
  })

  it('a contract as owner sets a mandate, stops and gives away its agent', async () => {
    const key = privateKeyToAccount(generatePrivateKey())
    const owner = signingFor(await deployAccount(key.address), key)
    const trader = await newOwnedTrader(privateKeyToAccount(generatePrivateKey()), owner)
    const { agentId } = trader
    const limited = await sendAsOwner(owner, 'setMandate', { agentId, mode: 'trade', maxTradeUsdc: '50' })
    expect(limited).toMatchObject({
      status: 200,
      body: { owner: owner.address, mandate: { maxTradeUsdc: '50000000' } },
    })
    await openPosition(trader, { usdcAmount: '50' })
    const stopped = await sendAsOwner(owner, 'stopAgent', { agentId, action: 'flatten' })
    expect(stopped).toMatchObject({ status: 201, body: { mandate: { mode: 'reduceOnly' } } })

    const newKey = privateKeyToAccount(generatePrivateKey())
    const newOwner = signingFor(await deployAccount(newKey.address), newKey)
    await sendAsOwner(owner, 'offerOwnership', { agentId, newOwner: newOwner.address })
    const accepted = await sendAsOwner(newOwner, 'acceptOwnership', { agentId, newSigner: newKey.address })
    expect(accepted).toMatchObject({ status: 201, body: { owner: newOwner.address, signer: newKey.address } })
  })

  it('a contract as owner is refused if another key signed', async () => {
    const key = privateKeyToAccount(generatePrivateKey())
    const owner = signingFor(await deployAccount(key.address), key)
    const { agentId } = await newOwnedTrader(privateKeyToAccount(generatePrivateKey()), owner)
    const stranger = privateKeyToAccount(generatePrivateKey())
    const body = await signedByOwner(stranger, 'stopAgent', { agentId, action: 'flatten' })
    expect(await call('stopAgent', body)).toMatchObject({ status: 400, body: { code: 'INVALID_SIGNATURE' } })
  })
})

describe('a key whose account has code', () => {
  it('a key whose account has code still owns as a key', async () => {
    const owner = privateKeyToAccount(generatePrivateKey())
    const { agentId } = await newOwnedTrader(privateKeyToAccount(generatePrivateKey()), owner)
    await client.setCode({ address: owner.address, bytecode: `0xef0100${'11'.repeat(20)}` })
    expect((await sendAsOwner(owner, 'stopAgent', { agentId, action: 'reduceOnly' })).status).toBe(201)
  })

  it('a key whose account has code still signs as a key', async () => {
    const account = privateKeyToAccount(generatePrivateKey())
    const { body } = await call('registerAgent', await registrationOf(account))
    const trader = { agentId: body.agentId, account }
    // The code that an EIP-7702 delegation leaves at the address does not implement ERC-1271.
    await client.setCode({ address: account.address, bytecode: `0xef0100${'11'.repeat(20)}` })
    expect((await submit(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '10' })).status).toBe(201)
  })
})

/**
 * Code that accepts every signature, except that it consumes all gas while `condition` leaves something on the stack.
 */
const hostileCode = (condition: string): Hex => {
  const burn = (condition.length / 2 + 17).toString(16)
  return `0x${condition}60${burn}57631626ba7e60e01b5f5260205ff35bfe`
}

/** What a contract may tell a simulation by. */
const hostile: Record<string, string> = {
  'whether gas has a price': '3a',
  'the parity of the time': '42600116',
  'the parity of the last block hash': '60014303406001' + '16',
  'how much gas is left': '5a600c1c600116',
  'nothing, and burns all gas': '6001',
}

/** Code that reverts with a reason. */
function revertingCode(reason: string): Hex {
  const data = encodeErrorResult({ abi: parseAbi(['error Error(string)']), args: [reason] }).slice(2)
  const size = (data.length / 2).toString(16)
  return `0x60${size}600a5f3960${size}5ffd${data}`
}

describe('a contract that refuses a signature with the words of a node', () => {
  it.each(['too many requests', 'header not found', 'insufficient funds'])(
    'a contract that reverts with %o neither pauses the node nor counts as its failure',
    async reason => {
      const account = privateKeyToAccount(generatePrivateKey())
      await client.setCode({ address: account.address, bytecode: revertingCode(reason) })
      const body = await registrationOf(account)
      const stranger = privateKeyToAccount(generatePrivateKey())
      const forged = { ...body, signature: await stranger.signMessage({ message: reason }) }
      expect(await call('registerAgent', forged)).toMatchObject({ status: 400, body: { code: 'INVALID_SIGNATURE' } })
    },
  )
})

/** Code that accepts every signature, and returns three megabytes or as many as a million gas buys. */
const longReplies: Record<string, Hex> = {
  'as a million gas buys': '0x631626ba7e60e01b5f52620a00005ff3',
  'as a call without a limit buys': '0x631626ba7e60e01b5f52623000005ff3',
}

/** Counts the bytes that the service reads of what nodes return. */
function countBytesRead(): () => number {
  const { fetch } = globalThis
  let bytes = 0
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const response = await fetch(input, init)
    const counted = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        bytes += chunk.byteLength
        controller.enqueue(chunk)
      },
    })
    return new Response(response.body?.pipeThrough(counted) ?? null, response)
  })
  return () => bytes
}

describe('a contract that returns as many bytes', () => {
  afterEach(() => vi.restoreAllMocks())

  it.each(Object.entries(longReplies))(
    '%s is refused as a signer and as a payer, and they are not read',
    async (_, code) => {
      const stranger = privateKeyToAccount(generatePrivateKey())
      const { address } = privateKeyToAccount(generatePrivateKey())
      await client.setCode({ address, bytecode: code })
      const registration = await registrationOf(signingFor(address, stranger))
      const paid = appWith({ X402_ENABLED: 'true' })
      const { requirements } = (await callOverHttp('getRegistrationQuote', {}, paid)).body.x402
      const payment = {
        x402Version: 2,
        accepted: requirements,
        payload: {
          signature: registration.signature,
          authorization: {
            from: address,
            to: requirements.payTo,
            value: requirements.amount,
            validAfter: '0',
            validBefore: `${Math.floor(Date.now() / 1_000) + requirements.maxTimeoutSeconds}`,
            nonce: pad(address),
          },
        },
      }
      const bytesRead = countBytesRead()
      expect((await callOverHttp('registerAgent', registration)).body.code).toBe('INVALID_SIGNATURE')
      const verified = { x402Version: 2, paymentPayload: payment, paymentRequirements: requirements }
      expect((await callOverHttp('verifyPayment', verified, paid)).body.invalidReason).toMatch(/signature/)
      expect(bytesRead()).toBeLessThan(100_000)
    },
  )
})

describe('contracts that accept every signature while they are simulated, and fail in the block', () => {
  it('cost a handful of reverted transactions whatever their signatures recover to, and nobody else', async () => {
    const { address } = deployment.accounts.executor
    const [young, old] = await Promise.all([newTrader(), newTrader()])
    const owners = await Promise.all(
      Object.values(hostile).map(async condition => {
        const owner = privateKeyToAccount(generatePrivateKey())
        const { agentId } = await newOwnedTrader(privateKeyToAccount(generatePrivateKey()), owner)
        await client.setCode({ address: owner.address, bytecode: hostileCode(condition) })
        return { agentId }
      }),
    )
    const before = await newestBlock()
    const attack = async ({ agentId }: { agentId: string }) => {
      const codes: string[] = []
      for (let message = 0; message < 10; message++) {
        const stranger = privateKeyToAccount(generatePrivateKey())
        const { body } = await sendAsOwner(
          stranger,
          'setMandate',
          { agentId, mode: 'trade', maxTradeUsdc: '50' },
          callOverHttp,
        )
        codes.push(body.code ?? 'executed')
      }
      return codes
    }
    const trade = async (trader: Trader) => {
      const positionId = await openPosition(trader, { usdcAmount: '40' })
      for (const exitBps of [1_000, 5_000, 10_000])
        expect(await submit(trader, 'submitReduceIntent', { positionId, exitBps })).toMatchObject({ status: 201 })
    }
    await Promise.all([...owners.map(attack), trade(young), trade(old)])
    const { reverts } = await gasSince(address, before)
    expect(reverts).toBeLessThanOrEqual(3 * owners.length)
  })
})
