import { TriggerType } from '@agent-trading-service/protocol/enums'
import type { ExitRule } from '@agent-trading-service/protocol/exit-rule'
import {
  hashExits,
  isOrderMessage,
  isOwnerMessage,
  isWebhookMessage,
  orderPrimaryTypes,
  ownerPrimaryTypes,
  signingTypes,
  webhookPrimaryTypes,
} from '@agent-trading-service/protocol/typed-data'
import {
  concat,
  createPublicClient,
  encodeAbiParameters,
  type Hex,
  hashMessage,
  hashTypedData,
  http,
  keccak256,
  parseAbi,
  stringToHex,
  zeroHash,
} from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { beforeAll, describe, expect, it } from 'vitest'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import { currentKeccak256 } from '../../src/crypto/keccak256.ts'
import { secp256k1 } from '../../src/crypto/secp256k1.ts'
import { newTrader, openPosition, registrationOf, sign, signedIntent, type Trader } from '../support/actors.ts'
import type { Body } from '../support/body.ts'
import { call, deployment, type Input, request } from '../support/surfaces.ts'

const { contracts } = deployment
const client = createPublicClient({ transport: retryLatest(http(deployment.rpcUrl)) })

let trader: Trader
let positionId: string
beforeAll(async () => {
  trader = await newTrader()
  positionId = await openPosition(trader, { usdcAmount: '20' })
})

const exits = [
  { triggerBps: -800, exitBps: 5000 },
  { triggerBps: 1500, exitBps: 10000 },
]
const rules: ExitRule[] = [
  { triggerType: TriggerType.StopLoss, triggerBps: -800n, exitBps: 5000 },
  { triggerType: TriggerType.TakeProfit, triggerBps: 1500n, exitBps: 10_000 },
]

it('recovers, signs and hashes with WebAssembly', () => {
  expect(secp256k1().name).toBe('WebAssembly')
  expect(currentKeccak256().name).toBe('WebAssembly')
})

/** Returns the quote of an open, whose typed data the tests sign incorrectly. */
async function quote() {
  const { body } = await call('getTradeIntentQuote', {
    agentId: trader.agentId,
    symbol: 'AAPL',
    usdcAmount: '250',
    exits: JSON.stringify(exits),
  })
  return body
}

/** Signs the typed data of a quote with changes to its message and domain. */
const signWith = ({ typedData }: Body, message: Input = {}, domain: Input = {}) =>
  sign(trader.account, {
    ...typedData,
    domain: { ...typedData.domain, ...domain },
    message: { ...typedData.message, ...message },
  })

const ruleHash = ({ triggerType, triggerBps, exitBps }: ExitRule) =>
  keccak256(
    encodeAbiParameters(
      [{ type: 'uint8' }, { type: 'int256' }, { type: 'uint16' }],
      [triggerType, triggerBps, exitBps],
    ),
  )

/** A mistake, how it is made, and a text of the problem that the service reports. */
const mistakes: [mistake: string, sign: (quote: Body) => Promise<Hex>, text: string][] = [
  ['amountNotScaled', q => signWith(q, { usdcAmount: '250' }), '250000000'],
  ['amountScaledTo18', q => signWith(q, { usdcAmount: `${250n * 10n ** 18n}` }), '18 decimals'],
  ['otherNonce', q => signWith(q, { nonce: `${BigInt(q.nonce) + 1n}` }), 'nonce'],
  ['otherNonce', q => signWith(q, { nonce: `${BigInt(q.nonce) - 1n}` }), 'nonce'],
  [
    'deadlineInMilliseconds',
    q => signWith(q, { deadline: `${BigInt(q.typedData.message.deadline) * 1000n}` }),
    'milliseconds',
  ],
  [
    'swapped',
    q => signWith(q, { vault: q.typedData.message.token, token: q.typedData.message.vault }),
    'vault and token',
  ],
  ['otherSlippage', q => signWith(q, { maxSlippageBps: 50 }), 'maxSlippageBps'],
  ['exitsOrder', q => signWith(q, { exitsHash: hashExits(rules.toReversed()) }), 'order'],
  [
    'exitsKind',
    q => signWith(q, { exitsHash: hashExits(rules.map(rule => ({ ...rule, triggerType: 1 - rule.triggerType }))) }),
    'StopLoss',
  ],
  [
    'exitsKind',
    q =>
      signWith(q, { exitsHash: hashExits(rules.map(r => ({ ...r, triggerBps: r.triggerBps < 0n ? 800n : 1500n }))) }),
    'negative',
  ],
  ['exitsHashedOtherwise', q => signWith(q, { exitsHash: keccak256(concat(rules.map(ruleHash))) }), 'abi.encode'],
  ['exitsNotHashed', q => signWith(q, { exitsHash: zeroHash }), 'abi.encode'],
  [
    'exitsNotHashed',
    ({ typedData }) => {
      const { exitsHash: _, ...message } = typedData.message
      const rule = [
        { name: 'triggerType', type: 'uint8' },
        { name: 'triggerBps', type: 'int256' },
        { name: 'exitBps', type: 'uint16' },
      ]
      const OpenPosition = typedData.types.OpenPosition.map((field: { name: string }) =>
        field.name === 'exitsHash' ? { name: 'exits', type: 'ExitRule[]' } : field,
      )
      return sign(trader.account, {
        ...typedData,
        types: { EIP712Domain: [], OpenPosition, ExitRule: rule },
        message: { ...message, exits: rules },
      })
    },
    'the exits themselves',
  ],
  ['otherChainId', q => signWith(q, {}, { chainId: 1 }), 'chain id 1'],
  [
    'otherDomain',
    q => signWith(q, {}, { name: 'Service AgentRegistry', verifyingContract: contracts.AgentRegistry }),
    '',
  ],
  [
    'otherVerifyingContract',
    q => signWith(q, {}, { verifyingContract: contracts.PositionManager }),
    'verifyingContract',
  ],
  ['otherDomainName', q => signWith(q, {}, { name: 'TradeRouter' }), 'domain name'],
  ['otherDomainVersion', q => signWith(q, {}, { version: '2' }), 'version'],
  ['personalSign', q => trader.account.signMessage({ message: { raw: q.digest } }), 'eth_signTypedData_v4'],
  ['personalSign', q => trader.account.sign({ hash: hashMessage(q.digest) }), 'personal_sign'],
]

describe('a signature with a common mistake', () => {
  it.each(mistakes)(
    'a signature with a common mistake is rejected and checked with its mistake: %s',
    async (mistake, signWrongly, text) => {
      const quoted = await quote()
      const intent = quoted.body
      const signature = await signWrongly(quoted)
      const { status, body: refusal } = await call('submitTradeIntent', {
        agentId: trader.agentId,
        ...intent,
        signature,
      })
      expect({ status, refusal }).toMatchObject({
        status: 400,
        refusal: { code: 'INVALID_SIGNATURE', details: { mistake } },
      })
      expect(refusal.error).toContain(text)

      const { body: result } = await call('verifySignature', {
        primaryType: 'OpenPosition',
        agentId: trader.agentId,
        intent,
        signature,
      })
      expect(result).toMatchObject({ valid: false, mistake, problem: refusal.details.problem, digest: quoted.digest })
    },
  )

  it('a signature with a common mistake is explained for reduces and registrations too', async () => {
    const reduce = await call('getReduceIntentQuote', { agentId: trader.agentId, positionId, exitBps: 5000 })
    const { message } = reduce.body.typedData
    const swapped = await signWith(reduce.body, { agentId: message.positionId, positionId: message.agentId })
    const answer = await call('submitReduceIntent', {
      agentId: trader.agentId,
      ...reduce.body.body,
      signature: swapped,
    })
    const isSame = message.agentId === message.positionId
    expect(answer).toMatchObject(isSame ? { status: 201 } : { status: 400, body: { details: { mistake: 'swapped' } } })

    const account = privateKeyToAccount(generatePrivateKey())
    const registration = await call('getRegistrationQuote', {
      signer: account.address,
      vault: deployment.vaults.genesis,
      name: 'explained',
      metadataURI: 'https://agents.example/explained.json',
    })
    const signature = await sign(account, {
      ...registration.body.typedData,
      domain: { ...registration.body.typedData.domain, chainId: 42161 },
    })
    expect(await call('registerAgent', { ...registration.body.body, signature })).toMatchObject({
      status: 400,
      body: { code: 'INVALID_SIGNATURE', details: { mistake: 'otherChainId' } },
    })
  })

  it('a signature with a common mistake is the only one with a mistake in its details', async () => {
    const body = await signedIntent(
      trader,
      'submitTradeIntent',
      { symbol: 'AAPL', usdcAmount: '10' },
      { usdcAmount: '11' },
    )
    const { body: refusal } = await call('submitTradeIntent', body)
    expect(refusal.details).not.toHaveProperty('mistake')
  })
})

describe('the signature check', () => {
  it('the signature check accepts valid signatures without using a nonce or sending a transaction', async () => {
    const body = await quote()
    const signature = await signWith(body)
    const sent = await client.getTransactionCount({ address: deployment.accounts.executor.address })
    for (const input of [
      { agentId: trader.agentId, intent: body.body },
      { message: body.typedData.message },
      { message: { ...body.typedData.message, exitsHash: undefined }, exits },
    ]) {
      const { body: result } = await call('verifySignature', { primaryType: 'OpenPosition', signature, ...input })
      expect(result).toMatchObject({ valid: true, digest: body.digest, signer: trader.account.address, warnings: [] })
    }
    expect(await client.getTransactionCount({ address: deployment.accounts.executor.address })).toBe(sent)
    expect((await quote()).nonce).toBe(body.nonce)
  })

  it('the signature check warns about a nonce and a deadline that would be rejected', async () => {
    const body = await quote()
    const message = { ...body.typedData.message, nonce: '99', deadline: '1' }
    const signature = await signWith(body, message)
    const { body: result } = await call('verifySignature', { primaryType: 'OpenPosition', message, signature })
    expect(result).toMatchObject({
      valid: true,
      warnings: [expect.stringContaining('99'), expect.stringContaining('passed')],
    })
  })

  it('the signature check accepts registrations and identity links', async () => {
    const account = privateKeyToAccount(generatePrivateKey())
    const { signature, ...intent } = await registrationOf(account)
    expect((await call('verifySignature', { primaryType: 'SelfRegister', intent, signature })).body).toMatchObject({
      valid: true,
      signer: account.address,
    })
    const link = await call('getErc8004LinkQuote', { agentId: trader.agentId, erc8004AgentId: '5' })
    const signed = await sign(trader.account, link.body.typedData)
    const { body: result } = await call('verifySignature', {
      primaryType: 'LinkERC8004',
      agentId: trader.agentId,
      intent: link.body.body,
      signature: signed,
    })
    expect(result).toMatchObject({ valid: true, digest: link.body.digest })
  })

  it.each([
    ['neither message nor intent', { primaryType: 'ReducePosition' }],
    ['a message that lacks a field', { primaryType: 'ReducePosition', message: { agentId: '1' } }],
    ['a field of the wrong type', { primaryType: 'ReducePosition', message: { agentId: 'one' } }],
    ['an unknown primary type', { primaryType: 'Permit', message: {} }],
    ['an intent without an agent', { primaryType: 'ReducePosition', intent: { positionId: '1' } }],
  ])('the signature check rejects %s', async (_, input) => {
    const answer = await call('verifySignature', { signature: `0x${'11'.repeat(65)}`, ...input })
    expect(answer).toMatchObject({ status: 400, body: { code: 'INVALID_REQUEST' } })
  })

  it('the signature check responds 404 for an unknown agent', async () => {
    const message = { agentId: '999999', positionId: '1', exitBps: 1, deadline: '1', nonce: '0' }
    const answer = await call('verifySignature', {
      primaryType: 'ReducePosition',
      message,
      signature: `0x${'11'.repeat(65)}`,
    })
    expect(answer).toMatchObject({ status: 404, body: { code: 'AGENT_NOT_FOUND' } })
  })
})

describe('the descriptors for hardware wallets', () => {
  it('the descriptors for hardware wallets bind each message to the domain that verifies it, under the type of its vector', async () => {
    const { body } = await call('getSigningVectors')
    const described = new Set<string>()
    for (const contract of ['AgentRegistry', 'TradeRouter', 'OwnerControls', 'OrderBook', 'Service']) {
      const response = await request(`/.well-known/erc7730/${contract}.json`)
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/json'])
      const { context, metadata, display } = await response.json<Body>()
      expect(metadata.constants.usdc).toBe(contracts.USDC)
      for (const encoded of Object.keys(display.formats)) {
        const [primaryType = ''] = encoded.split('(')
        const { domain, types } = body.vectors.find((vector: Body) => vector.primaryType === primaryType).typedData
        const fields = types[primaryType].map(({ type, name }: Body) => `${type} ${name}`)
        expect(encoded).toBe(`${primaryType}(${fields})`)
        expect(context.eip712).toEqual({
          domain: { name: domain.name, version: domain.version },
          deployments: [{ chainId: domain.chainId, address: domain.verifyingContract }],
        })
        described.add(primaryType)
      }
    }
    expect(described).toEqual(new Set(body.vectors.map(({ primaryType }: Body) => primaryType)))
  })
})

describe('the signing vectors', () => {
  it('the signing vectors have the digests of the contracts and the signatures of their key', async () => {
    const { body } = await call('getSigningVectors')
    const account = privateKeyToAccount(body.privateKey)
    expect(account.address).toBe(body.signer)
    expect(body.vectors.map(({ primaryType }: Body) => primaryType)).toEqual([
      'SelfRegister',
      'LinkERC8004',
      'OpenPosition',
      'AddToPosition',
      'ReducePosition',
      'UpdateExitLadder',
      ...orderPrimaryTypes,
      ...ownerPrimaryTypes,
      ...webhookPrimaryTypes,
    ])
    for (const vector of body.vectors) {
      if (
        !isOrderMessage(vector.primaryType) &&
        !isOwnerMessage(vector.primaryType) &&
        !isWebhookMessage(vector.primaryType)
      )
        expect(await contractDigest(vector), vector.primaryType).toBe(vector.digest)
      expect(await sign(account, vector.typedData), vector.primaryType).toBe(vector.signature)
    }
  })

  it.each(ownerPrimaryTypes)('the signing vectors have the type of the contract for %s', async primaryType => {
    const address = (await client.readContract({
      address: contracts.AgentRegistry,
      abi: agentRegistryAbi,
      functionName: 'ownerControls',
    })) as Hex
    const name = primaryType.replace(/([a-z])([A-Z])/g, '$1_$2').toUpperCase()
    const typehash = await client.readContract({
      address,
      abi: parseAbi([`function ${name}_TYPEHASH() view returns (bytes32)`]),
    } as never)
    const fields = signingTypes[primaryType].map(field => `${field.type} ${field.name}`)
    expect(keccak256(stringToHex(`${primaryType}(${fields.join(',')})`))).toBe(typehash)
  })
})

/**
 * Computes the digest with the registry's own view, or with viem: contracts/test/router/Signing.t.sol holds the
 * router's types.
 */
function contractDigest({ primaryType, typedData }: Body): Promise<Hex> {
  const { message } = typedData
  const registry = { address: contracts.AgentRegistry, abi: agentRegistryAbi } as const
  if (primaryType === 'SelfRegister') {
    const { vault, name, metadataURI, signer, linkERC8004, erc8004AgentId, nonce, deadline } = message
    return client.readContract({
      ...registry,
      functionName: 'hashSelfRegister',
      args: [vault, name, metadataURI, signer, linkERC8004, BigInt(erc8004AgentId), BigInt(nonce), BigInt(deadline)],
    })
  }
  if (primaryType === 'LinkERC8004') {
    const { agentId, erc8004AgentId, nonce, deadline } = message
    return client.readContract({
      ...registry,
      functionName: 'hashLinkERC8004',
      args: [BigInt(agentId), BigInt(erc8004AgentId), BigInt(nonce), BigInt(deadline)],
    })
  }
  return Promise.resolve(hashTypedData(typedData))
}
