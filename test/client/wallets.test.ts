import { type BaseWallet, type TypedDataDomain, type TypedDataField, Wallet } from 'ethers'
import type { Address, Hex } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import { expect, it } from 'vitest'
import type { Account } from '../../packages/client/src/index.ts'
import { spellings } from '../support/signature-spellings.ts'
import { clientOf, LADDER, newAccount, newPayer } from './support.ts'

const { 'an ERC-6492 wrapper': _, ...ofKeys } = spellings

it.each(Object.entries(ofKeys))(
  "a key's signature is posted in the canonical form whatever its wallet returns: %s",
  async (_, spell) => {
    const posted: Hex[] = []
    const walletOf = (key: PrivateKeyAccount): Account => ({
      address: key.address,
      signTypedData: async typedData => spell(await key.signTypedData(typedData as never)),
    })
    const [account, owner] = [walletOf(newAccount()), walletOf(newAccount())]
    const client = clientOf(account, {
      fetch(url, init) {
        const body = typeof init?.body === 'string' ? JSON.parse(init.body) : {}
        posted.push(...[body.signature, body.ownerSignature].filter(signature => signature !== undefined))
        return fetch(url, init)
      },
    })
    const { agentId } = await client.register({
      vault: 'genesis',
      name: 'wallets',
      owner,
      metadataURI: 'https://a.example/w',
      payer: newPayer(),
    })
    const { positionId } = await client.agent(agentId).open({ symbol: 'NVDA', usdcAmount: '50', exits: LADDER })
    expect(positionId).toMatch(/^\d+$/)
    await client.owner(agentId, owner).stop({ action: 'reduceOnly' })
    expect(await client.agent(agentId).webhooks.list()).toEqual([])
    expect(posted.length).toBeGreaterThanOrEqual(5)
    for (const signature of posted) {
      expect(signature).toMatch(/^0x[0-9a-f]{128}(1b|1c)$/)
      expect(BigInt(signature.slice(0, 2) + signature.slice(66, 130)) >> 255n).toBe(0n)
    }
  },
)

it('a wallet of ethers registers, trades, and signs for its owner', async () => {
  const walletOf = (wallet: { address: string; signTypedData: BaseWallet['signTypedData'] }): Account => ({
    address: wallet.address as Address,
    signTypedData: async ({ domain, types, message }) => {
      const { EIP712Domain: _, ...own } = types as Record<string, TypedDataField[]>
      return (await wallet.signTypedData(domain as TypedDataDomain, own, message as Record<string, unknown>)) as Hex
    },
  })
  const [account, owner] = [walletOf(Wallet.createRandom()), walletOf(Wallet.createRandom())]
  const client = clientOf(account)
  const { agentId } = await client.register({
    vault: 'genesis',
    name: 'ethers',
    owner,
    metadataURI: 'https://a.example/e',
    payer: newPayer(),
  })
  const agent = client.agent(agentId)
  const { positionId } = await agent.open({ symbol: 'NVDA', usdcAmount: '50', exits: LADDER })
  await client.owner(agentId, owner).stop({ action: 'reduceOnly' })
  await agent.reduce({ positionId, exitBps: 10_000 })
})
