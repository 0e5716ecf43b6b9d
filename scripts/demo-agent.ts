import assert from 'node:assert/strict'
import { formatUnits, type Hex } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { mandateVaultAbi } from '../contracts-abi/mandate-vault.ts'
import { usdcTokenAbi } from '../contracts-abi/usdc-token.ts'
import type { Devnet } from '../devnet/index.ts'
import { createPayer } from '../packages/client/src/pay.ts'
import {
  confirm,
  httpSurface,
  type Json,
  mcpSurface,
  pollUntil,
  type Service,
  type Surface,
  serviceAt,
} from './demo-service.ts'
import { promoteAgent } from './promote-agent.ts'

// The life of the demo's agent. Every line comes from a response, and every transaction is confirmed.

const say = (text: string) => console.log(text)
const usdc = (baseUnits: string | bigint) => `${formatUnits(BigInt(baseUnits), 6)} USDC`
const percent = (bps: number) => `${bps / 100} %`
const inDollars = (priceUsdc: string) => Number(priceUsdc) / 1e6

type Kind = 'trade_intent' | 'add_intent' | 'reduce_intent' | 'exit_ladder_intent'
type Submitted = { quote: Json; positionId: string; confirmed: string }
/** A registered agent, and what the steps do with it. */
type Agent = {
  id: string
  vaultId: Hex
  /** Owns the agent and signs for it. */
  owner: Hex
  /** Quotes, signs and posts a message of the owner, which the service relays. */
  sendAsOwner(segment: string): Promise<{ quote: Json; confirmed: string }>
  /** Quotes, signs and submits an intent over a surface, and confirms its transaction. */
  submitOver(surface: Surface): (kind: Kind, input: Record<string, string>) => Promise<Submitted>
  submit(kind: Kind, input: Record<string, string>): Promise<Submitted>
  position(id: string): Promise<Json>
  risk(): Promise<Json>
}

/**
 * Registers an agent and trades as it: on paper and with real capital, over HTTP and with MCP tools. `beforeFall` is
 * awaited while the agent has an open position, before the price reaches its stop-loss.
 */
export async function liveAsAgent(
  devnet: Devnet,
  service: Service,
  beforeFall?: (agentId: string) => Promise<void>,
): Promise<void> {
  const agent = await register(devnet, service)
  const { capitalMode } = await agent.risk()
  if (capitalMode === 'Simulated') {
    await proveOnPaper(devnet, service, agent)
    await lockFirstLoss(devnet, agent)
    await bePromoted(devnet, service, agent)
  }
  await tradeUntilStoppedOut(devnet, service, agent, beforeFall)
  await tradeWithTools(devnet, service, agent)
}

async function register(devnet: Devnet, service: Service): Promise<Agent> {
  const account = privateKeyToAccount(generatePrivateKey())
  const sign = ({ types: { EIP712Domain: _, ...types }, ...rest }: Json) => account.signTypedData({ ...rest, types })

  say('\nRegister')
  const { vaults } = await service.get('/vaults')
  const [genesis] = vaults
  say(`  vaults: ${vaults.map((vault: Json) => `${vault.name} (${usdc(vault.totalAssets)})`).join(', ')}`)
  const registration = new URLSearchParams({
    signer: account.address,
    vault: genesis.contractAddress,
    name: 'demo agent',
    metadataURI: 'https://agents.example/demo.json',
  })
  const terms = await service.get(`/agents/register/quote?${registration}`)
  const { registrationFee } = terms
  const payer = privateKeyToAccount(devnet.deployment.accounts.payer.privateKey)
  const payments: Json[] = []
  const feeTerms = {
    account: payer,
    chainId: devnet.chainId,
    asset: devnet.deployment.contracts.USDC,
    maxAmount: BigInt(registrationFee.amount),
  }
  const paying = createPayer(feeTerms, async request => {
    const response = await fetch(request)
    const receipt = response.headers.get('payment-response')
    if (receipt) payments.push(JSON.parse(atob(receipt)))
    return response
  })
  const registered = await serviceAt(service.url, paying.fetch).post('/agents/register', {
    ...terms.body,
    signature: await sign(terms.typedData),
  })
  const [payment] = payments
  assert.deepEqual([payments.length, payment.success, payment.payer], [1, true, payer.address])
  say(`  fee of ${usdc(registrationFee.amount)} paid over x402, ${await confirm(service, payment.transaction)}`)
  const { agentId } = registered
  say(`  agent ${agentId} of ${account.address}, ${await confirm(service, registered.transactionHash)}`)
  const { agent } = await service.get(`/agents/${agentId}`)
  assert.deepEqual([agent.owner, agent.signer, agent.statusName], [account.address, account.address, 'Active'])

  const submitOver: Agent['submitOver'] = surface => async (kind, input) => {
    const quote = await surface.call(`svc_get_${kind}_quote`, { agentId, ...input })
    assert.deepEqual(
      quote.checks.filter(({ pass }: Json) => !pass),
      [],
      'every check of the quote passes',
    )
    const signature = await sign(quote.typedData)
    const receipt = await surface.call(`svc_submit_${kind}`, { agentId, ...quote.body, signature })
    return { quote, positionId: receipt.positionId, confirmed: await confirm(service, receipt.transactionHash) }
  }
  const sendAsOwner: Agent['sendAsOwner'] = async segment => {
    const path = `/agents/${agentId}/${segment}`
    const quote = await service.get(`${path}/quote`)
    const receipt = await service.post(path, { ...quote.body, signature: await sign(quote.typedData) })
    return { quote, confirmed: await confirm(service, receipt.transactionHash) }
  }
  const risk = () => service.get(`/agents/${agentId}/risk-state`)
  const { capitalMode, allocation } = await risk()
  say(`  ${agent.trackName} track: allocation ${usdc(allocation.cap)}, capitalMode ${capitalMode}`)
  return {
    id: agentId,
    vaultId: genesis.contractAddress,
    owner: account.address,
    sendAsOwner,
    submitOver,
    submit: submitOver(httpSurface(service)),
    position: async id => (await service.get(`/agents/${agentId}/positions/${id}`)).position,
    risk,
  }
}

async function proveOnPaper(devnet: Devnet, service: Service, agent: Agent): Promise<void> {
  say('\nProve itself on paper')
  const before = await assetsOf(service, agent)
  const opened = await agent.submit('trade_intent', { symbol: 'NVDA', usdcAmount: '2000' })
  const { positionId } = opened
  const nvda = await agent.position(positionId)
  assert.deepEqual([nvda.capitalMode, nvda.usdcCostBasis], ['Simulated', '2000000000'])
  say(
    `  NVDA at ${usdc(nvda.entryPriceUsdc)}: position ${positionId}, capitalMode ${nvda.capitalMode}, ${opened.confirmed}`,
  )
  say(`    the largest accepted amount is ${usdc(opened.quote.maxUsdcAmount)}, limited by ${opened.quote.bindingRule}`)
  const added = await agent.submit('add_intent', { positionId, usdcAmount: '1000' })
  const larger = await agent.position(positionId)
  assert.equal(larger.usdcCostBasis, '3000000000')
  say(`  increased to ${usdc(larger.usdcCostBasis)}: average entry ${usdc(larger.entryPriceUsdc)}, ${added.confirmed}`)
  const laddered = await agent.submit('exit_ladder_intent', { positionId, exits: '-800:10000,2000:10000' })
  const { pendingRules } = await agent.position(positionId)
  assert.deepEqual(
    pendingRules.map(({ triggerBps }: Json) => triggerBps),
    [-800, 2000],
  )
  const rules = pendingRules.map(({ triggerType, triggerBps }: Json) => `${triggerType} at ${percent(triggerBps)}`)
  say(`  ladder: ${rules.join(', ')}, ${laddered.confirmed}`)
  const { promotionReadiness: early } = await agent.risk()
  assert.equal(early.eligible, false)
  await assert.rejects(promote(devnet, agent), /TooFewTrades/)
  for (const blocker of early.blockers) say(`    not yet promoted: ${blocker}`)

  const rise = inDollars(larger.entryPriceUsdc) * 1.08
  await devnet.setPrice('NVDA', rise.toFixed(2))
  const reduced = await agent.submit('reduce_intent', { positionId, exitBps: '5000' })
  say(
    `  NVDA rises to ${rise.toFixed(2)}: half sold for about ${usdc(reduced.quote.estimate.usdcOut)}, ${reduced.confirmed}`,
  )
  const closed = await agent.submit('reduce_intent', { positionId, exitBps: '10000' })
  const won = await agent.position(positionId)
  assert.equal(won.status, 'Closed')
  say(`  the rest closed: ${usdc(won.realizedPnlUsdc)} realized, ${closed.confirmed}`)
  // The score counts what the agent made beyond holding the token until now.
  await devnet.setPrice('NVDA', inDollars(larger.entryPriceUsdc).toFixed(2))
  say('  NVDA falls back: holding would have earned nothing')
  const after = await assetsOf(service, agent)
  assert.deepEqual(after, before, 'paper trades do not touch the vault')
  say(`  the vault is as before: ${usdc(after.totalAssets)}, of which ${usdc(after.idleAssets)} idle`)
}

/** Deposits for the owner, who locks the shares that pay the agent's losses before depositors do. */
async function lockFirstLoss(devnet: Devnet, agent: Agent): Promise<void> {
  say('\nLock first-loss capital')
  await passEvaluationPeriod(devnet, agent)
  const { promotionReadiness: waiting, firstLoss: none } = await agent.risk()
  assert.deepEqual([waiting.eligible, waiting.blockers.length, none.lockedUsdc], [false, 1, '0'])
  await assert.rejects(promote(devnet, agent), /FirstLossMissing/)
  for (const blocker of waiting.blockers) say(`    not yet promoted: ${blocker}`)
  const { owner, vaultId } = agent
  const { contracts, accounts } = devnet.deployment
  const { payer } = accounts
  const price = BigInt(none.requiredUsdc)
  const assets = (price * 102n) / 100n
  await devnet.fund(payer.address, assets)
  const asset = { address: contracts.USDC, abi: usdcTokenAbi } as const
  await devnet.send(payer, { ...asset, functionName: 'approve', args: [vaultId, assets] })
  const vault = { address: vaultId, abi: mandateVaultAbi } as const
  await devnet.send(payer, { ...vault, functionName: 'deposit', args: [assets, owner] })
  say(`  the price of the promotion is ${usdc(price)} at risk: ${usdc(assets)} are deposited for the owner`)
  const { confirmed } = await agent.sendAsOwner('first-loss')
  const { firstLoss: locked } = await agent.risk()
  assert.ok(BigInt(locked.lockedUsdc) >= price, 'the lock suffices')
  say(`  the owner signs LockFirstLoss for shares worth ${usdc(locked.lockedUsdc)}, relayed ${confirmed}`)
}

/** Lets the rest of the evaluation period pass. */
async function passEvaluationPeriod(devnet: Devnet, agent: Agent): Promise<void> {
  const { promotionReadiness } = await agent.risk()
  const { evaluationPeriodSeconds, evaluationElapsedSeconds } = promotionReadiness
  const secondsLeft = Number(evaluationPeriodSeconds) - Number(evaluationElapsedSeconds)
  if (secondsLeft > 0) await devnet.increaseTime(secondsLeft)
}

async function bePromoted(devnet: Devnet, service: Service, agent: Agent): Promise<void> {
  say('\nPromotion')
  const { promotionReadiness: ready, trackId } = await agent.risk()
  assert.deepEqual([ready.eligible, ready.blockers], [true, []])
  say(
    `  promotionReadiness: ${ready.tradesCompleted} of ${ready.minTradesRequired} trades,` +
      ` ${ready.evaluationElapsedSeconds} of ${ready.evaluationPeriodSeconds} s,` +
      ` score ${ready.alphaScore} of ${ready.promotionScoreRequired}, eligible ${ready.eligible}`,
  )
  const promotion = await promote(devnet, agent)
  const { trackId: newTrackId, capitalMode, allocation } = await agent.risk()
  assert.deepEqual([newTrackId, capitalMode], [trackId + 1, 'Real'])
  const { agent: record } = await service.get(`/agents/${agent.id}`)
  say(`  a stranger promotes the agent, ${await confirm(service, promotion)}`)
  say(`  ${record.trackName} track: allocation ${usdc(allocation.cap)}, capitalMode ${capitalMode}`)
}

async function tradeUntilStoppedOut(
  devnet: Devnet,
  service: Service,
  agent: Agent,
  beforeFall?: (agentId: string) => Promise<void>,
): Promise<void> {
  say('\nTrade real capital through Uniswap, and be stopped out')
  const opened = await agent.submit('trade_intent', { symbol: 'NVDA', usdcAmount: '500' })
  const { positionId } = opened
  const nvda = await agent.position(positionId)
  assert.notEqual(nvda.capitalMode, 'Simulated')
  say(
    `  NVDA at ${usdc(nvda.entryPriceUsdc)}: position ${positionId}, capitalMode ${nvda.capitalMode}, ${opened.confirmed}`,
  )
  const { deployed } = await assetsOf(service, agent)
  const held = deployed.find(({ symbol }: Json) => symbol === 'NVDA')
  assert.equal(held.tokenAmount, nvda.tokenAmount)
  say(`  the vault now holds ${formatUnits(BigInt(held.tokenAmount), 18)} NVDA`)
  const { firstLoss: before } = await agent.risk()
  await beforeFall?.(agent.id)
  const fall = inDollars(nvda.entryPriceUsdc) * 0.9
  await devnet.setPrice('NVDA', fall.toFixed(2))
  say(`  NVDA falls to ${fall.toFixed(2)}; the agent sends nothing`)
  const stopped = await pollUntil(
    () => agent.position(positionId),
    ({ status }) => status === 'Closed',
  )
  assert.deepEqual([stopped.nextRuleIndex, stopped.exitRules[0].triggerType], [1, 'StopLoss'])
  // The keeper records the outcome after the block that closed the position.
  const { lastOutcome: exit } = await pollUntil(
    () => service.get(`/agents/${agent.id}/positions/${positionId}/automation`),
    ({ lastOutcome }) => lastOutcome?.outcome === 'executed',
  )
  say(`  the keeper fires the stop-loss, ${await confirm(service, exit.transactionHash)}`)
  say(`  position ${positionId} is ${stopped.status}, ${usdc(stopped.realizedPnlUsdc)} realized`)
  if (before === null) return
  const { firstLoss: after } = await agent.risk()
  const burned = BigInt(before.lockedShares) - BigInt(after.lockedShares)
  const paid = (burned * BigInt(after.lockedUsdc)) / BigInt(after.lockedShares)
  assert.ok(paid * 100n >= -BigInt(stopped.realizedPnlUsdc) * 99n, 'locked shares paid the loss')
  say(`  the owner's locked shares paid ${usdc(paid)} of it: depositors lost nothing`)
}

async function tradeWithTools(devnet: Devnet, service: Service, agent: Agent): Promise<void> {
  say('\nReduce and close another position with MCP tools')
  const mcp = await mcpSurface(service.url)
  say(`  ${mcp.toolCount} tools at ${service.url}/mcp`)
  const agentId = agent.id
  const submit = agent.submitOver(mcp)
  const positionOf = async (id: string) =>
    (await mcp.call('svc_get_agent_position', { agentId, positionId: id })).position
  const { positionId } = await submit('trade_intent', { symbol: 'AAPL', usdcAmount: '400' })
  const aapl = await positionOf(positionId)
  const rise = inDollars(aapl.entryPriceUsdc) * 1.06
  await devnet.setPrice('AAPL', rise.toFixed(2))
  say(`  AAPL bought at ${usdc(aapl.entryPriceUsdc)} rises to ${rise.toFixed(2)}`)
  const reduced = await submit('reduce_intent', { positionId, exitBps: '5000' })
  say(`  half sold for about ${usdc(reduced.quote.estimate.usdcOut)}, ${reduced.confirmed}`)
  const closed = await submit('reduce_intent', { positionId, exitBps: '10000' })
  const won = await positionOf(positionId)
  assert.equal(won.status, 'Closed')
  assert.ok(BigInt(won.realizedPnlUsdc) > 0n, 'the position closed with a profit')
  say(`  the rest closed: ${usdc(won.realizedPnlUsdc)} realized, ${closed.confirmed}`)

  say('\nProfit and loss')
  const { positions: history } = await mcp.call('svc_list_closed_positions', { agentId })
  const { positions: left } = await mcp.call('svc_get_agent_positions', { agentId })
  const risk = await mcp.call('svc_get_risk_state', { agentId })
  await mcp.close()
  assert.deepEqual([history.length, left.length], [Number(positionId), 0])
  const realized = history.reduce((sum: bigint, closed: Json) => sum + BigInt(closed.realizedPnlUsdc), 0n)
  assert.equal(risk.pnl.lifetimeRealizedUsdc, `${realized}`)
  for (const { symbol, capitalMode, realizedPnlUsdc } of history)
    say(`  ${symbol}: ${usdc(realizedPnlUsdc)}, capitalMode ${capitalMode}`)
  say(
    `  realized since registration: ${usdc(risk.pnl.lifetimeRealizedUsdc)}; equity on this track ${usdc(risk.equity.currentUsdc)}`,
  )
}

/** Promotes the agent with a stranger's key. */
function promote({ rpcUrl, deployment: { accounts, contracts } }: Devnet, { id }: Agent): Promise<Hex> {
  const sender = privateKeyToAccount(accounts.depositor.privateKey)
  return promoteAgent({ rpcUrl, registry: contracts.AgentRegistry, sender }, BigInt(id))
}

async function assetsOf(service: Service, { vaultId }: Agent): Promise<Json> {
  const { totalAssets, idleAssets, deployed } = await service.get(`/vaults/${vaultId}/stats`)
  return { totalAssets, idleAssets, deployed }
}
