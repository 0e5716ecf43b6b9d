import express, { type ErrorRequestHandler, type Express, type Request } from 'express'
import {
  type Abi,
  type Address,
  BaseError,
  ContractFunctionRevertedError,
  createPublicClient,
  createWalletClient,
  defineChain,
  type Hex,
  http,
  type Log,
  nonceManager,
  parseEventLogs,
  parseUnits,
} from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { agentRegistryAbi } from '../../../contracts-abi/agent-registry.ts'
import { tradeRouterAbi } from '../../../contracts-abi/trade-router.ts'

// The baseline relay: Express with viem's wallet client and nonce manager. It simulates, sends, waits for the receipt
// and returns the id from its event. It is a fair baseline: ids come from receipts, reverts are decoded, and all
// requests share one account.

export type PeerOptions = {
  rpcUrl: string
  chainId: number
  contracts: Record<string, Address>
  tokens: Record<string, Address>
  executorKey: Hex
  relayerKey: Hex
}

const POLLING_MS = 50
const RECEIPT_TIMEOUT_MS = 15_000
const INTENT_EVENTS = [
  'PositionOpenedFromIntent',
  'PositionIncreasedFromIntent',
  'PositionReducedFromIntent',
  'PositionExitLadderUpdatedFromIntent',
] as const

class Reverted extends Error {}

export function createPeer({ rpcUrl, chainId, contracts, tokens, executorKey, relayerKey }: PeerOptions): Express {
  const chain = defineChain({
    id: chainId,
    name: `chain ${chainId}`,
    nativeCurrency: { name: 'Ether', symbol: 'ETH', decimals: 18 },
    rpcUrls: { default: { http: [rpcUrl] } },
  })
  const transport = http(rpcUrl)
  const client = createPublicClient({ chain, transport, pollingInterval: POLLING_MS })
  const walletOf = (key: Hex) =>
    createWalletClient({ account: privateKeyToAccount(key, { nonceManager }), chain, transport })
  const [executor, relayer] = [walletOf(executorKey), walletOf(relayerKey)]
  const router = contracts.TradeRouter as Address
  const registry = contracts.AgentRegistry as Address
  const vaults = new Map<bigint, Address>()

  /** Returns the vault of an agent, which is part of the signed message but not of the body. */
  async function vaultOf(agentId: bigint): Promise<Address> {
    const known = vaults.get(agentId)
    if (known) return known
    const call = { address: registry, abi: agentRegistryAbi, functionName: 'getAgent', args: [agentId] } as const
    const { vault } = await client.readContract(call)
    vaults.set(agentId, vault)
    return vault
  }

  async function execute(wallet: typeof executor, address: Address, abi: Abi, functionName: string, args: unknown[]) {
    const { request } = await client.simulateContract({ address, abi, functionName, args, account: wallet.account })
    const hash = await wallet.writeContract(request)
    const receipt = await client.waitForTransactionReceipt({ hash, timeout: RECEIPT_TIMEOUT_MS })
    if (receipt.status !== 'success') throw new Reverted(`The transaction ${hash} reverted.`)
    return receipt
  }

  async function trade(request: Request, functionName: string, intent: Record<string, unknown>) {
    const agentId = BigInt(request.params.agentId as string)
    const { deadline, nonce, signature } = request.body
    const signed = { agentId, ...intent, deadline: BigInt(deadline), nonce: BigInt(nonce) }
    const receipt = await execute(executor, router, tradeRouterAbi, functionName, [signed, signature])
    const [event] = parseEventLogs({ abi: tradeRouterAbi, logs: receipt.logs as Log[], eventName: [...INTENT_EVENTS] })
    return {
      agentId: `${agentId}`,
      positionId: `${event?.args.positionId}`,
      transactionHash: receipt.transactionHash,
      blockNumber: `${receipt.blockNumber}`,
    }
  }

  const app = express().use(express.json())
  app.get('/health', (_, response) => {
    response.json({ status: 'ok' })
  })
  app.post('/agents/register', async (request, response) => {
    const { vault, name, metadataURI, signer, linkERC8004, erc8004AgentId, deadline, signature } = request.body
    const args = [vault, name, metadataURI, signer, linkERC8004, BigInt(erc8004AgentId), BigInt(deadline), signature]
    const receipt = await execute(relayer, registry, agentRegistryAbi, 'selfRegisterAgent', args)
    const logs = receipt.logs as Log[]
    const [event] = parseEventLogs({ abi: agentRegistryAbi, logs, eventName: 'AgentRegistered' })
    response.status(201).json({ agentId: `${event?.args.agentId}`, transactionHash: receipt.transactionHash })
  })
  app.post('/agents/:agentId/trade-intents', async (request, response) => {
    const { symbol, usdcAmount, exits, minTokenOut = '0', maxSlippageBps = 100 } = request.body
    const answer = await trade(request, 'openPosition', {
      vault: await vaultOf(BigInt(request.params.agentId)),
      token: tokens[symbol],
      usdcAmount: parseUnits(usdcAmount, 6),
      minTokenOut: BigInt(minTokenOut),
      maxSlippageBps,
      exits: rulesOf(exits),
    })
    response.status(201).json(answer)
  })
  app.post('/agents/:agentId/add-intents', async (request, response) => {
    const { positionId, usdcAmount, minTokenOut = '0', maxSlippageBps = 100 } = request.body
    const answer = await trade(request, 'addToPosition', {
      positionId: BigInt(positionId),
      usdcAmount: parseUnits(usdcAmount, 6),
      minTokenOut: BigInt(minTokenOut),
      maxSlippageBps,
    })
    response.status(201).json(answer)
  })
  app.post('/agents/:agentId/reduce-intents', async (request, response) => {
    const { positionId, exitBps } = request.body
    response.status(201).json(await trade(request, 'reducePosition', { positionId: BigInt(positionId), exitBps }))
  })
  app.post('/agents/:agentId/exit-ladder-intents', async (request, response) => {
    const { positionId, exits } = request.body
    const intent = { positionId: BigInt(positionId), exits: rulesOf(exits) }
    response.status(201).json(await trade(request, 'updateExitLadder', intent))
  })
  return app.use(answerError)
}

/** Returns 400 if the contracts reject a call, because that is the caller's mistake, and 502 for everything else. */
const answerError: ErrorRequestHandler = (error, _request, response, _next) => {
  const reverted = error instanceof BaseError && error.walk(cause => cause instanceof ContractFunctionRevertedError)
  if (reverted instanceof ContractFunctionRevertedError)
    response.status(400).json({ error: reverted.data?.errorName ?? 'the call reverts' })
  else if (error instanceof Reverted || error instanceof SyntaxError)
    response.status(400).json({ error: error.message })
  else response.status(502).json({ error: error instanceof BaseError ? error.shortMessage : 'internal error' })
}

const rulesOf = (exits: { triggerBps: number; exitBps: number }[]) =>
  exits.map(({ triggerBps, exitBps }) => ({
    triggerType: triggerBps < 0 ? 0 : 1,
    triggerBps: BigInt(triggerBps),
    exitBps,
  }))
