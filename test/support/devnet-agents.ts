import { TriggerType } from '@agent-trading-service/protocol/enums'
import { hashExits, signingTypes } from '@agent-trading-service/protocol/typed-data'
import { type Address, type LocalAccount, parseEventLogs } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { tradePolicyAbi } from '../../contracts-abi/trade-policy.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import type { Devnet } from '../../devnet/index.ts'

const NEVER = 4_102_444_800n // 2100

export type DevnetAgents = ReturnType<typeof createDevnetAgents>

/** Returns what agents do on an embedded chain without the service: their signatures go to the contracts directly. */
export function createDevnetAgents({ client, deployment, send }: Devnet) {
  const { accounts, contracts, vaults, tokens } = deployment

  async function register(vault: string, signer: LocalAccount): Promise<bigint> {
    const message = {
      vault: vaults[vault] ?? '0x',
      name: 'agent',
      metadataURI: 'https://agents.example/agent.json',
      signer: signer.address,
      linkERC8004: false,
      erc8004AgentId: 0n,
      nonce: 0n,
      deadline: NEVER,
    } as const
    const signature = await signer.signTypedData({
      domain: await domainOf(contracts.AgentRegistry),
      primaryType: 'SelfRegister',
      message,
      types: { SelfRegister: signingTypes.SelfRegister },
    })
    const { vault: address, name, metadataURI, linkERC8004, erc8004AgentId, deadline } = message
    const { logs } = await send(accounts.relayer, {
      address: contracts.AgentRegistry,
      abi: agentRegistryAbi,
      functionName: 'selfRegisterAgent',
      args: [address, name, metadataURI, signer.address, linkERC8004, erc8004AgentId, deadline, signature],
    })
    const [registered] = parseEventLogs({ abi: agentRegistryAbi, logs, eventName: 'AgentRegistered' })
    if (!registered) throw new Error('The receipt has no AgentRegistered event.')
    return registered.args.agentId
  }

  /** Opens a position with a stop-loss at -8 % and a take-profit at 15 %. */
  async function open(
    agentId: bigint,
    signer: LocalAccount,
    {
      vault = 'genesis',
      symbol,
      amount,
      maxSlippageBps = 100,
      nonce = 0n,
    }: { vault?: string; symbol: string; amount: bigint; maxSlippageBps?: number; nonce?: bigint },
  ): Promise<bigint> {
    const intent = {
      agentId,
      vault: vaults[vault] ?? '0x',
      token: tokens[symbol] ?? '0x',
      usdcAmount: amount,
      minTokenOut: 0n,
      maxSlippageBps,
      exits: [
        { triggerType: TriggerType.StopLoss, triggerBps: -800n, exitBps: 10_000 },
        { triggerType: TriggerType.TakeProfit, triggerBps: 1_500n, exitBps: 10_000 },
      ],
      deadline: NEVER,
      nonce,
    } as const
    const signature = await signer.signTypedData({
      domain: await domainOf(contracts.TradeRouter),
      primaryType: 'OpenPosition',
      message: { ...intent, exitsHash: hashExits(intent.exits) },
      types: { OpenPosition: signingTypes.OpenPosition },
    })
    const { logs } = await send(accounts.executor, {
      address: contracts.TradeRouter,
      abi: [...tradeRouterAbi, ...tradePolicyAbi], // the policy's errors come through
      functionName: 'openPosition',
      args: [intent, signature],
    })
    const [opened] = parseEventLogs({ abi: tradeRouterAbi, logs, eventName: 'PositionOpenedFromIntent' })
    if (!opened) throw new Error('The receipt has no PositionOpenedFromIntent event.')
    return opened.args.positionId
  }

  async function domainOf(address: Address) {
    const { domain } = await client.getEip712Domain({ address })
    const { salt: _, ...signed } = domain // the contract's domain has no salt, and a zero salt would be hashed
    return signed
  }

  return { register, open }
}
