import type { Hex, TypedDataDefinition } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { expect } from 'vitest'
import type { Body } from './body.ts'

/** The result of a tool, the same for every client. */
export type ToolResult = { content: { type: string; text?: string }[]; structuredContent?: Body; isError?: boolean }
export type CallTool = (
  name: string,
  input: Record<string, unknown>,
  meta?: Record<string, string>,
) => Promise<ToolResult>
/** Returns the payment for the requirements of an error, as `_meta` of the next call. */
export type Pay = (required: Body) => Promise<Record<string, string>>

/** Returns the structured content of a call that must succeed. Its text must be the same JSON. */
export async function succeed(result: Promise<ToolResult>): Promise<Body> {
  const { content, structuredContent, isError } = await result
  expect({ isError: isError ?? false, text: content[0]?.text }).toEqual({ isError: false, text: expect.any(String) })
  expect(JSON.parse(content[0]?.text ?? '')).toEqual(structuredContent)
  return structuredContent
}

/** Returns the error body of a call that must fail. */
export async function refused(result: Promise<ToolResult>): Promise<Body> {
  const { content, structuredContent, isError } = await result
  expect({ isError, structuredContent }).toEqual({ isError: true, structuredContent: undefined })
  return JSON.parse(content[0]?.text ?? '')
}

/** Signs typed data as a wallet would. */
export function sign(account: PrivateKeyAccount, { types, ...typedData }: Body): Promise<Hex> {
  const { EIP712Domain: _, ...own } = types
  return account.signTypedData({ ...typedData, types: own } as TypedDataDefinition)
}

/** An agent that registers and trades through tools alone. Its key signs outside of the server. */
export class ToolTrader {
  readonly call: CallTool
  readonly pay: Pay | undefined
  readonly account = privateKeyToAccount(generatePrivateKey())
  agentId = ''

  constructor(call: CallTool, pay?: Pay) {
    this.call = call
    this.pay = pay
  }

  async register(fields: Record<string, unknown> = {}): Promise<string> {
    const { vaults } = await succeed(this.call('svc_list_vaults', {}))
    const vault = vaults.find(({ id }: Body) => id === 'genesis').contractAddress
    const metadataURI = 'https://agents.example/t.json'
    const asked = { signer: this.account.address, vault, name: 'tools', metadataURI, detail: 'full' }
    const quote = await succeed(this.call('svc_get_agent_registration_quote', { ...asked, ...fields }))
    const body = { ...quote.body, signature: await sign(this.account, quote.typedData) }
    let answer = this.call('svc_register_agent', body)
    if (this.pay) {
      const { isError, structuredContent: required } = await answer
      expect({ isError, required }).toMatchObject({ isError: true, required: { x402Version: 2, accepts: [{}] } })
      answer = this.call('svc_register_agent', body, await this.pay(required))
    }
    this.agentId = (await succeed(answer)).agentId
    return this.agentId
  }

  /** Quotes, signs and submits an intent, and returns the receipt. */
  async trade(intent: 'trade' | 'add' | 'reduce' | 'exit_ladder', asked: Record<string, unknown>): Promise<Body> {
    const { agentId } = this
    const quote = await succeed(this.call(`svc_get_${intent}_intent_quote`, { agentId, ...asked, detail: 'full' }))
    const signature = await sign(this.account, quote.typedData)
    return succeed(this.call(`svc_submit_${intent}_intent`, { agentId, ...quote.body, signature }))
  }
}

/** Completes the trade of the demo through tools alone: register, open, add, change the ladder, reduce and close. */
export async function wholeTrade(call: CallTool, pay?: Pay): Promise<void> {
  const trader = new ToolTrader(call, pay)
  const agentId = await trader.register()
  const { positionId } = await trader.trade('trade', {
    symbol: 'NVDA',
    usdcAmount: '250',
    exits: '-800:10000,1500:10000',
  })
  await trader.trade('add', { positionId, usdcAmount: '50' })
  await trader.trade('exit_ladder', { positionId, exits: '-500:10000,2000:10000' })
  const { position } = await succeed(call('svc_get_agent_position', { agentId, positionId }))
  expect(position).toMatchObject({ symbol: 'NVDA', status: 'Open', usdcCostBasis: '300000000' })
  expect(position.pendingRules.map(({ triggerBps }: Body) => triggerBps)).toEqual([-500, 2000])

  await trader.trade('reduce', { positionId, exitBps: 5000 })
  const { transactionHash } = await trader.trade('reduce', { positionId, exitBps: 10000 })
  expect(await succeed(call('svc_get_transaction', { txHash: transactionHash }))).toMatchObject({ status: 'success' })
  const { positions } = await succeed(call('svc_list_closed_positions', { agentId, limit: 1 }))
  expect(positions).toMatchObject([{ positionId, status: 'Closed', tokenAmount: '0' }])
  expect(await succeed(call('svc_get_risk_state', { agentId }))).toMatchObject({ allocation: { used: '0' } })
}
