import { createTestClient, createWalletClient, getAddress, type Hex, http, publicActions } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { describe, expect, it } from 'vitest'
import bytecode from '../../contracts/bytecode.json'
import { smartAccountAbi } from '../../contracts-abi/smart-account.ts'
import { retryLatest } from '../../devnet/retry-latest.ts'
import { newTrader, openPosition, registrationOf, sign, signedIntent } from '../support/actors.ts'
import { newOwnedTrader, sendAsOwner, signedByOwner } from '../support/owner.ts'
import { spellings, wrap } from '../support/signature-spellings.ts'
import { call, deployment } from '../support/surfaces.ts'

// One signature in every form in which wallets return it. The digest does not depend on the form.

const transport = retryLatest(http(deployment.rpcUrl))
const client = createTestClient({ mode: 'anvil', pollingInterval: 100, transport }).extend(publicActions)
const wallet = createWalletClient({
  account: privateKeyToAccount((deployment.accounts.agents[6] as { privateKey: Hex }).privateKey),
  transport,
})

const newKey = () => privateKeyToAccount(generatePrivateKey())
const at = (address: Hex, key: PrivateKeyAccount) => ({ ...key, address }) as PrivateKeyAccount

/** Deploys a smart account that accepts the signatures of a key. */
async function smartAccount(key: PrivateKeyAccount): Promise<PrivateKeyAccount> {
  const hash = await wallet.deployContract({
    chain: null,
    abi: smartAccountAbi,
    bytecode: (bytecode as unknown as { SmartAccount: Hex }).SmartAccount,
    args: [key.address],
  })
  const { contractAddress } = await client.waitForTransactionReceipt({ hash })
  return at(getAddress(contractAddress as Hex), key)
}

describe.each(Object.entries(spellings))('a signature in another form: %s', (form, spell) => {
  it(`a signature in another form registers, trades and is the same trade in the canonical form: ${form}`, async () => {
    const account = newKey()
    const registration = await registrationOf(account)
    const spelled = { ...registration, signature: spell(registration.signature) }
    const first = await call('registerAgent', spelled)
    expect(first).toMatchObject({ status: 201 })
    expect(await call('registerAgent', registration)).toMatchObject({ status: 200, body: first.body })

    const trader = { agentId: first.body.agentId, account }
    const intent = await signedIntent(trader, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '40' })
    const opened = await call('submitTradeIntent', { ...intent, signature: spell(intent.signature as Hex) })
    expect(opened).toMatchObject({ status: 201 })
    expect((await call('submitTradeIntent', intent)).body).toEqual(opened.body)

    const { body } = await call('getWebhookListQuote', { agentId: trader.agentId })
    const signature = spell(await sign(account, body.typedData))
    expect((await call('listWebhooks', { agentId: trader.agentId, ...body.body, signature })).status).toBe(200)
  })

  it(`a signature in another form is valid for owners and for the check of signatures: ${form}`, async () => {
    const owner = newKey()
    const { agentId } = await newOwnedTrader(newKey(), owner)
    const limits = await signedByOwner(owner, 'setMandate', { agentId, mode: 'trade', maxTradeUsdc: '50' })
    const changed = await call('setMandate', { ...limits, signature: spell(limits.signature as Hex) })
    expect(changed).toMatchObject({ status: 200, body: { mandate: { maxTradeUsdc: '50000000' } } })
    const stop = await signedByOwner(owner, 'stopAgent', { agentId, action: 'reduceOnly' })
    const { signature, ...intent } = stop
    const checked = await call('verifySignature', {
      primaryType: 'StopBuying',
      agentId,
      intent,
      signature: spell(signature as Hex),
    })
    expect(checked.body).toMatchObject({ valid: true, accepted: signature, recovered: owner.address })
  })

  it(`a signature in another form is accepted from the key of a smart account: ${form}`, async () => {
    const account = await smartAccount(newKey())
    const registration = await registrationOf(account)
    const { status, body } = await call('registerAgent', {
      ...registration,
      signature: spell(registration.signature),
    })
    expect({ status, body }).toMatchObject({ status: 201 })
    const stop = await signedByOwner(account, 'stopAgent', { agentId: body.agentId, action: 'reduceOnly' })
    const stopped = await call('stopAgent', { ...stop, signature: spell(stop.signature as Hex) })
    expect(stopped).toMatchObject({ status: 201, body: { mandate: { mode: 'reduceOnly' } } })
  })
})

/**
 * A wallet that signs as a Safe does on chain: any call approves the hash in calldata[4..36]; only `0x` is a signature.
 */
const APPROVING_WALLET =
  '0x60003560e01c631626ba7e14601657600160043555005b6044356035576004355415603557631626ba7e60e01b60005260206000f35b60006000fd'

describe('an account with code that refuses a signature', () => {
  it('an account with code that refuses a signature is named as what refused it, also if a key made the signature', async () => {
    const account = await smartAccount(newKey())
    const { body: registered } = await call('registerAgent', await registrationOf(account))
    const stranger = at(account.address, newKey())
    const stop = await signedByOwner(stranger, 'stopAgent', { agentId: registered.agentId, action: 'reduceOnly' })
    const refused = await call('stopAgent', stop)
    expect(refused).toMatchObject({
      status: 400,
      body: {
        code: 'INVALID_SIGNATURE',
        error: expect.stringContaining(`the account ${account.address} has code`),
        remedy: expect.stringContaining('Sign as that account requires'),
        details: { mistake: 'accountRefused' },
      },
    })
    expect(refused.body.error).toContain('ERC-1271')
    expect(refused.body.error).not.toContain('another key')
    const { signature, ...intent } = stop
    const { agentId } = registered
    const checked = await call('verifySignature', { primaryType: 'StopBuying', agentId, intent, signature })
    expect(checked.body).toMatchObject({ valid: false, mistake: 'accountRefused', remedy: refused.body.remedy })
  })
})

describe('an account that approves hashes on chain', () => {
  it('an account that approves hashes on chain registers, trades and stops with an empty signature', async () => {
    const account = newKey()
    await client.setCode({ address: account.address, bytecode: APPROVING_WALLET })
    const approve = async (digest: Hex) => {
      const hash = await wallet.sendTransaction({
        chain: null,
        to: account.address,
        data: `0x00000000${digest.slice(2)}`,
      })
      await client.waitForTransactionReceipt({ hash })
    }
    const quoted = await call('getRegistrationQuote', {
      signer: account.address,
      vault: deployment.vaults.genesis,
      name: 'safe',
      metadataURI: 'https://agents.example/test.json',
    })
    const unapproved = await call('registerAgent', { ...quoted.body.body, signature: '0x' })
    expect(unapproved).toMatchObject({
      status: 400,
      body: { code: 'INVALID_SIGNATURE', details: { mistake: 'accountRefused' } },
    })
    await approve(quoted.body.digest)
    const registered = await call('registerAgent', { ...quoted.body.body, signature: '0x' })
    expect(registered).toMatchObject({ status: 201 })

    const { agentId } = registered.body
    const quote = await call('getTradeIntentQuote', { agentId, symbol: 'NVDA', usdcAmount: '40' })
    await approve(quote.body.digest)
    const opened = await call('submitTradeIntent', { agentId, ...quote.body.body, signature: '0x' })
    expect(opened).toMatchObject({ status: 201 })
    const stop = await call('getStopQuote', { agentId, action: 'flatten' })
    await approve(stop.body.digest)
    expect(await call('stopAgent', { agentId, ...stop.body.body, signature: '0x' })).toMatchObject({ status: 201 })
  })

  it('an account that approves hashes on chain must have code for an empty signature', async () => {
    const { agentId, account } = await newTrader()
    const intent = await signedIntent({ agentId, account }, 'submitTradeIntent', { symbol: 'NVDA', usdcAmount: '10' })
    expect(await call('submitTradeIntent', { ...intent, signature: '0x' })).toMatchObject({
      status: 400,
      body: { code: 'INVALID_SIGNATURE', details: { mistake: 'emptySignature' } },
    })
  })
})

describe('a smart account that is not deployed', () => {
  it('a smart account without code gets "not deployed" for its wrapped signature, and may post the same body once it has code', async () => {
    const account = newKey()
    const stranger = newKey()
    const registration = await registrationOf(at(account.address, stranger))
    const body = { ...registration, signature: wrap(registration.signature) }
    const refused = await call('registerAgent', body)
    expect(refused).toMatchObject({
      status: 400,
      body: {
        code: 'INVALID_SIGNATURE',
        details: { mistake: 'accountNotDeployed' },
        remedy: expect.stringContaining('Deploy the account'),
      },
    })
    expect(refused.body.error).toContain('not deployed')
    const checked = await call('verifySignature', {
      primaryType: 'SelfRegister',
      intent: registration,
      signature: body.signature,
    })
    expect(checked.body).toMatchObject({ valid: false, mistake: 'accountNotDeployed', remedy: refused.body.remedy })
    const deployed = await smartAccount(stranger)
    await client.setCode({
      address: account.address,
      bytecode: (await client.getCode({ address: deployed.address })) as Hex,
    })
    expect(await call('registerAgent', body)).toMatchObject({ status: 201 })
  })

  it('a smart account without code gets "not deployed" for the signatures of several owners', async () => {
    const account = newKey()
    const registration = await registrationOf(account)
    const signature = `${registration.signature}${registration.signature.slice(2)}`
    expect(await call('registerAgent', { ...registration, signature })).toMatchObject({
      status: 400,
      body: { details: { mistake: 'accountNotDeployed' } },
    })
  })
})

describe('a signature in its own account form', () => {
  it('a signature in its own account form is not changed: a Safe marks an approved hash with v of 1', async () => {
    const account = newKey()
    // Accepts signatures whose byte 65 is 1, whatever else they are.
    await client.setCode({
      address: account.address,
      bytecode: '0x60a43560f81c600114601057600080fd5b631626ba7e60e01b60005260206000f3',
    })
    const registration = await registrationOf(account)
    const signature = `0x${'00'.repeat(12)}${account.address.slice(2)}${'00'.repeat(32)}01`
    const { status, body } = await call('registerAgent', { ...registration, signature })
    expect({ status, body }).toMatchObject({ status: 201 })
    expect(body.transaction.data).toContain(signature.slice(2).toLowerCase())
    expect(await openPosition({ agentId: body.agentId, account })).toMatch(/^\d+$/)
  })

  it('a signature in its own account form is refused if no key and no code accepts it', async () => {
    const owner = newKey()
    const { agentId } = await newOwnedTrader(newKey(), owner)
    expect(await sendAsOwner(newKey(), 'stopAgent', { agentId, action: 'reduceOnly' })).toMatchObject({
      status: 400,
      body: { code: 'INVALID_SIGNATURE' },
    })
  })
})
