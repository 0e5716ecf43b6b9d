import { TriggerType } from '@agent-trading-service/protocol/enums'
import { digestOf, hashExits, signingTypes } from '@agent-trading-service/protocol/typed-data'
import { type Address, encodeFunctionData, type Hex, type PublicClient, parseEventLogs } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { agentRegistryAbi } from '../contracts-abi/agent-registry.ts'
import { tradeRouterAbi } from '../contracts-abi/trade-router.ts'
import type { Devnet } from '../devnet/index.ts'

type Chain = Pick<Devnet, 'client' | 'deployment'>

/** A registered agent and the key that signs for it. */
export type BenchAgent = { agentId: bigint; account: PrivateKeyAccount }

/** A signed OpenPosition: the body that a client posts, and the router call for it. */
export type SignedOpen = {
  agentId: string
  digest: Hex
  body: Record<string, unknown>
  call: { to: Address; data: Hex }
}

/** The tokens of the genesis vault with deep pools. An agent may have one open position in each. */
const SYMBOLS = ['NVDA', 'AAPL', 'MSFT', 'AMZN', 'GOOGL', 'META', 'TSLA'] as const
const EXITS = [{ triggerBps: -800, exitBps: 10_000 }]
const RULES = EXITS.map(({ triggerBps, exitBps }) => ({
  triggerType: TriggerType.StopLoss,
  triggerBps: BigInt(triggerBps),
  exitBps,
}))
const LIFETIME_SECONDS = 3_600n
const REGISTRATION_GAS = 1_000_000n
const FEE = { maxFeePerGas: 100_000_000_000n, maxPriorityFeePerGas: 0n }

export const agentsFor = (intents: number) => Math.ceil(intents / SYMBOLS.length)

/** Registers new agents in the genesis vault with their own signatures; FeeManager's relayer sends the transactions. */
export async function registerAgents({ client, deployment }: Chain, count: number): Promise<BenchAgent[]> {
  const { contracts, vaults, accounts, chainId } = deployment
  const relayer = privateKeyToAccount(accounts.relayer.privateKey)
  const nonce = await client.getTransactionCount({ address: relayer.address })
  const domain = await domainOf(client, contracts.AgentRegistry)
  const deadline = await deadlineOf(client)
  const keys = Array.from({ length: count }, () => privateKeyToAccount(generatePrivateKey()))
  const register = async (account: PrivateKeyAccount, index: number) => {
    const name = 'bench agent'
    const metadataURI = 'https://agents.example/bench.json'
    const vault = vaults.genesis as Address
    const link = { linkERC8004: false, erc8004AgentId: 0n }
    const message = { vault, name, metadataURI, signer: account.address, ...link, nonce: 0n, deadline }
    const signature = await account.signTypedData({ domain, types: signingTypes, primaryType: 'SelfRegister', message })
    const data = encodeFunctionData({
      abi: agentRegistryAbi,
      functionName: 'selfRegisterAgent',
      args: [vault, name, metadataURI, account.address, false, 0n, deadline, signature],
    })
    const call = { to: contracts.AgentRegistry, data, gas: REGISTRATION_GAS, nonce: nonce + index }
    return relayer.signTransaction({ type: 'eip1559', chainId, ...FEE, ...call })
  }
  const raws = await Promise.all(keys.map(register))
  const hashes = await Promise.all(
    raws.map(serializedTransaction => client.sendRawTransaction({ serializedTransaction })),
  )
  await client.waitForTransactionReceipt({ hash: hashes.at(-1) as Hex, timeout: 30_000 })
  const receipts = await Promise.all(hashes.map(hash => client.getTransactionReceipt({ hash })))
  const registered = new Map<Address, bigint>()
  for (const { args } of parseEventLogs({
    abi: agentRegistryAbi,
    eventName: 'AgentRegistered',
    logs: receipts.flatMap(({ logs }) => logs),
  }))
    registered.set(args.signer, args.agentId)
  return keys.map(account => {
    const agentId = registered.get(account.address)
    if (agentId === undefined) throw new Error(`The registration of ${account.address} was not mined.`)
    return { agentId, account }
  })
}

/** Signs `count` OpenPosition intents in rotation, so that consecutive intents belong to different agents. */
export async function signOpens(
  { client, deployment }: Chain,
  agents: readonly BenchAgent[],
  count: number,
): Promise<SignedOpen[]> {
  const { contracts, vaults, tokens } = deployment
  const domain = await domainOf(client, contracts.TradeRouter)
  const deadline = await deadlineOf(client)
  const exitsHash = hashExits(RULES)
  const sign = async (index: number): Promise<SignedOpen> => {
    const round = Math.floor(index / agents.length)
    const { agentId, account } = agents[index % agents.length] as BenchAgent
    const symbol = SYMBOLS[round]
    if (symbol === undefined) throw new Error(`${count} intents need ${agentsFor(count)} agents.`)
    const terms = {
      agentId,
      vault: vaults.genesis as Address,
      token: tokens[symbol] as Address,
      usdcAmount: 1_000_000n,
      minTokenOut: 0n,
      maxSlippageBps: 100,
    }
    const bound = { deadline, nonce: BigInt(round) }
    const message = { ...terms, exitsHash, ...bound }
    const signature = await account.signTypedData({
      domain,
      types: signingTypes,
      primaryType: 'OpenPosition',
      message,
    })
    const data = encodeFunctionData({
      abi: tradeRouterAbi,
      functionName: 'openPosition',
      args: [{ ...terms, exits: RULES, ...bound }, signature],
    })
    const sent = { symbol, usdcAmount: '1', exits: EXITS, minTokenOut: '0', maxSlippageBps: 100 }
    return {
      agentId: `${agentId}`,
      digest: digestOf(domain, 'OpenPosition', message),
      body: { ...sent, deadline: `${deadline}`, nonce: `${bound.nonce}`, signature },
      call: { to: contracts.TradeRouter, data },
    }
  }
  return Promise.all(Array.from({ length: count }, (_, index) => sign(index)))
}

async function domainOf(client: PublicClient, address: Address) {
  const { name, version, chainId, verifyingContract } = (await client.getEip712Domain({ address })).domain
  return { name, version, chainId: BigInt(chainId), verifyingContract } // without the salt, which the contracts do not use
}
const deadlineOf = async (client: PublicClient) => (await client.getBlock()).timestamp + LIFETIME_SECONDS
