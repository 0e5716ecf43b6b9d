import { signingTypes } from '@agent-trading-service/protocol/typed-data'
import { type Hex, parseEventLogs, type TypedDataDefinition } from 'viem'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { usdcTokenAbi } from '../../contracts-abi/usdc-token.ts'
import { type Controls, controls } from '../../devnet/controls.ts'
import type { Deployment } from '../../devnet/deployment.ts'
import { connect } from '../../devnet/sender.ts'
import type { Body } from './body.ts'

/** An agent of a running service, and the key that signs for it and owns it. */
export type SceneAgent = { agentId: string; account: PrivateKeyAccount }
export type Scene = ReturnType<typeof createScene>

const REGISTRATION_FEE = 1_000_000n
const NEVER = 4_102_444_800n // 2100
const quoteAndSubmit = {
  open: 'trade-intents',
  add: 'add-intents',
  reduce: 'reduce-intents',
  ladder: 'exit-ladder-intents',
  order: 'orders',
} as const

/** Returns what agents and the market do for a viewer: over HTTP, and on chain where the API refuses. */
export function createScene(serviceUrl: string, deployment: Deployment) {
  const chain: Controls = controls(deployment)
  const client = connect(deployment.rpcUrl, deployment.chainId)

  async function request(path: string, init?: RequestInit): Promise<Body> {
    const response = await fetch(serviceUrl + path, init)
    const body = (await response.json()) as Body
    if (!response.ok) throw new Error(`${path} returned ${response.status}: ${JSON.stringify(body)}`)
    return body
  }
  const post = (path: string, body: Body) =>
    request(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })

  /** Registers an agent on chain, without the API's rules for names. `index` names an account of the embedded chain. */
  async function register(index: number, name: string, vault = 'genesis'): Promise<SceneAgent> {
    const sender = deployment.accounts.agents[index]
    if (sender === undefined) throw new Error(`The embedded chain has no agent account ${index}.`)
    const account = privateKeyToAccount(sender.privateKey)
    const { domain } = await client.getEip712Domain({ address: deployment.contracts.AgentRegistry })
    const { salt: _, ...signedDomain } = domain // the contract's domain has no salt, and a zero salt would be hashed
    const message = {
      vault: deployment.vaults[vault] ?? '0x',
      name,
      metadataURI: 'https://agents.example/agent.json',
      signer: account.address,
      linkERC8004: false,
      erc8004AgentId: 0n,
      nonce: await client.readContract({
        address: deployment.contracts.AgentRegistry,
        abi: agentRegistryAbi,
        functionName: 'nonces',
        args: [account.address],
      }),
      deadline: NEVER,
    } as const
    const signature = await account.signTypedData({
      domain: signedDomain,
      primaryType: 'SelfRegister',
      message,
      types: { SelfRegister: signingTypes.SelfRegister },
    })
    const { metadataURI, signer, linkERC8004, erc8004AgentId, deadline } = message
    // The sender of the registration pays its fee.
    const { payer } = deployment.accounts
    await chain.send(payer, {
      address: deployment.contracts.USDC,
      abi: usdcTokenAbi,
      functionName: 'approve',
      args: [deployment.contracts.FeeManager, REGISTRATION_FEE],
    })
    const { logs } = await chain.send(payer, {
      address: deployment.contracts.AgentRegistry,
      abi: agentRegistryAbi,
      functionName: 'selfRegisterAgent',
      args: [message.vault, name, metadataURI, signer, linkERC8004, erc8004AgentId, deadline, signature],
    })
    const [registered] = parseEventLogs({ abi: agentRegistryAbi, logs, eventName: 'AgentRegistered' })
    if (!registered) throw new Error('The receipt has no AgentRegistered event.')
    return { agentId: `${registered.args.agentId}`, account }
  }

  /** Signs the typed data of a quote as the agent, which also owns itself. */
  function sign({ account }: SceneAgent, typedData: Body): Promise<Hex> {
    const { EIP712Domain: _, ...types } = typedData.types
    return account.signTypedData({ ...typedData, types } as TypedDataDefinition)
  }

  /** Quotes, signs and submits an intent; returns its receipt and its digest. */
  async function trade(
    agent: SceneAgent,
    kind: keyof typeof quoteAndSubmit,
    { note, ...input }: Record<string, string>,
  ): Promise<Body> {
    const path = `/agents/${agent.agentId}/${quoteAndSubmit[kind]}`
    const { typedData, body, digest } = await request(`${path}/quote?${new URLSearchParams(input)}`)
    return {
      ...(await post(path, { ...body, ...(note && { note }), signature: await sign(agent, typedData) })),
      digest,
    }
  }

  return { chain, client, request, register, sign, trade }
}
