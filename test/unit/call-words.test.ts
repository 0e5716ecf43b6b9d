import {
  type Described,
  describeCall,
  describedAbis,
  describeEvent,
  type KnownAddresses,
} from '@agent-trading-service/protocol/call-words'
import {
  type Abi,
  type AbiParameter,
  encodeAbiParameters,
  encodeEventTopics,
  encodeFunctionData,
  getAddress,
  type Hex,
  zeroHash,
} from 'viem'
import { describe, expect, it } from 'vitest'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { multicall3Abi } from '../../contracts-abi/multicall3.ts'
import { orderBookAbi } from '../../contracts-abi/order-book.ts'
import { ownerControlsAbi } from '../../contracts-abi/owner-controls.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { timelockAbi } from '../../contracts-abi/timelock.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'

const contracts = Object.keys(describedAbis) as (keyof typeof describedAbis)[]
const addressOf = (index: number): Hex => `0x${(index + 1).toString(16).padStart(40, '0')}`
const at = (name: keyof typeof describedAbis) => addressOf(contracts.indexOf(name))
const NVDA = `0x${'a1'.repeat(20)}` as const
const OWNER = getAddress(`0x${'b2'.repeat(20)}`)
const known: KnownAddresses = {
  contractAt: address => contracts[Number(address) - 1],
  nameOf: address => (address.toLowerCase() === NVDA ? 'NVDA' : contracts[Number(address) - 1]),
}

/** A value of each type of the ABI. */
function sampleOf(parameter: AbiParameter): unknown {
  const { type } = parameter
  if (type.endsWith('[]')) return [sampleOf({ ...parameter, type: type.slice(0, -2) })]
  if (type === 'tuple' && 'components' in parameter)
    return Object.fromEntries(parameter.components.map(each => [each.name ?? '', sampleOf(each)]))
  if (type === 'address') return OWNER
  if (type === 'bool') return true
  if (type === 'string') return 'text'
  if (type.startsWith('bytes')) return type === 'bytes' ? '0x1234' : `0x${'12'.repeat(Number(type.slice(5)))}`
  return Number(/\d+/.exec(type)?.[0]) > 48 ? 1n : 1
}

const functions = contracts.flatMap(contract =>
  (describedAbis[contract] as Abi).flatMap(item =>
    item.type === 'function' && item.stateMutability !== 'view' && item.stateMutability !== 'pure'
      ? [{ contract, item }]
      : [],
  ),
)
const events = contracts.flatMap(contract =>
  (describedAbis[contract] as Abi).flatMap(item => (item.type === 'event' ? [{ contract, item }] : [])),
)

const textOf = ({ title, terms }: Described) => [title, ...terms.flatMap(({ name, value }) => [name, value])].join('\n')
const inWords = /^[A-Z][A-Za-z0-9 ,.:'-]+$/
const bySide = (calls: Described[]) =>
  calls.map(({ title, terms }) => [title, Object.fromEntries(terms.map(({ name, value }) => [name, value]))])

describe('the words of calls and events', () => {
  it('every call that a contract takes has words for what it does and for each of its arguments', () => {
    for (const { contract, item } of functions) {
      const data = encodeFunctionData({ abi: [item], functionName: item.name, args: item.inputs.map(sampleOf) })
      const [described] = describeCall({ to: at(contract), data }, known)
      expect(described, item.name).toMatchObject({ contract, name: item.name, title: expect.stringMatching(inWords) })
      if (described) expect(textOf(described), item.name).not.toMatch(/undefined|NaN|\[object|[a-z][A-Z]{2}[a-z]/)
    }
    expect(functions.length).toBeGreaterThan(100)
  })

  it('every event of a contract has words, those of trades and of plain transfers aside', () => {
    let described = 0
    for (const { contract, item } of events) {
      const args = Object.fromEntries(item.inputs.map(input => [input.name ?? '', sampleOf(input)]))
      const topics = encodeEventTopics({ abi: [item], eventName: item.name, args } as never) as Hex[]
      const inData = item.inputs.filter(({ indexed }) => !indexed)
      const data = encodeAbiParameters(inData, inData.map(sampleOf))
      const words = describeEvent({ address: at(contract), topics, data }, known)
      if (words === undefined) continue
      described++
      expect(words.title, item.name).toMatch(inWords)
      expect(textOf(words), item.name).not.toMatch(/undefined|NaN|\[object/)
    }
    expect(events.length - described).toBeLessThan(20)
  })

  it('a deposit says in units of USDC how much, into which vault and for whom', () => {
    const data = encodeFunctionData({ abi: mandateVaultAbi, functionName: 'deposit', args: [1_250_500_000n, OWNER] })
    expect(bySide(describeCall({ to: at('MandateVault'), data }, known))).toEqual([
      ['Deposit USDC for vault shares', { vault: 'MandateVault', amount: '1,250.50 USDC', receiver: OWNER }],
    ])
  })

  it('a call that brings prices along, in a batch, is described down to the call itself', () => {
    const mandate = {
      mode: 1,
      maxTradeUsdc: 50_000_000n,
      maxDailyTurnoverUsdc: 0n,
      maxExposureUsdc: 0n,
      allowedTokens: [NVDA],
      validUntil: 0n,
    } as const
    const inner = encodeFunctionData({
      abi: ownerControlsAbi,
      functionName: 'setMandate',
      args: [7n, mandate, 3n, 4_102_444_800n, '0x'],
    })
    const carried = encodeFunctionData({
      abi: ownerControlsAbi,
      functionName: 'withPrices',
      args: [['0x12', '0x34'], [], at('PriceOracle'), inner],
    })
    const call = { target: at('OwnerControls'), allowFailure: true, callData: carried }
    const data = encodeFunctionData({ abi: multicall3Abi, functionName: 'aggregate3', args: [[call]] })
    expect(bySide(describeCall({ to: at('Multicall3'), data }, known))).toEqual([
      ['Make several calls', {}],
      ['Bring prices along for a call', { reports: '2', oracle: 'PriceOracle' }],
      [
        'Replace the whole mandate of an agent',
        {
          agent: '7',
          'the agent': 'may only reduce and close',
          'one purchase': 'at most 50.00 USDC',
          'purchases of 24 hours': 'no limit',
          'open positions': 'no limit',
          'may buy': 'NVDA',
          ends: 'no end',
          nonce: '3',
          deadline: '2100-01-01T00:00:00Z',
        },
      ],
    ])
  })

  it('a list of posted prices names its tokens, and an order without exit rules says nothing of them', () => {
    const data = encodeFunctionData({
      abi: priceOracleAbi,
      functionName: 'setPrices',
      args: [[NVDA], [11_825_000_000n]],
    })
    expect(bySide(describeCall({ to: at('PriceOracle'), data }, known))).toEqual([
      ['Post prices', { tokens: 'NVDA', prices: '118.25 USD' }],
    ])
    const ladder = { agentId: 1n, positionId: 2n, exits: [], deadline: 0n, nonce: 0n }
    const empty = encodeFunctionData({ abi: tradeRouterAbi, functionName: 'updateExitLadder', args: [ladder, '0x'] })
    expect(describeCall({ to: at('TradeRouter'), data: empty }, known)[0]?.terms.map(({ field }) => field)).toEqual([
      'agentId',
      'positionId',
      'deadline',
      'nonce',
    ])
  })

  it('an order reads as its signer was shown it, with its exit rules', () => {
    const order = {
      agentId: 7n,
      side: 0,
      token: NVDA,
      positionId: 0n,
      usdcAmount: 250_000_000n,
      exitBps: 0,
      exits: [{ triggerType: 0, triggerBps: -500n, exitBps: 10_000 }],
      maxSlippageBps: 100,
      condition: 1,
      price: 12_000_000_000n,
      trailBps: 0,
      validAfter: 0n,
      validUntil: 4_102_444_800n,
      parts: 1,
      interval: 0n,
      key: 0n,
      deadline: 4_102_444_800n,
      nonce: 5n,
    } as const
    const data = encodeFunctionData({ abi: orderBookAbi, functionName: 'placeOrder', args: [order, '0x'] })
    expect(bySide(describeCall({ to: at('OrderBook'), data }, known))).toEqual([
      [
        'Place an order that waits on chain',
        expect.objectContaining({
          does: 'buy as a new position',
          token: 'NVDA',
          amount: '250.00 USDC',
          'exit rules': 'stop-loss at -5 %: sell 100 %',
          'waits for': 'an oracle price of 120 USD or less',
        }),
      ],
    ])
  })

  it('an operation of the timelock names the call that it makes', () => {
    const payload = encodeFunctionData({ abi: mandateVaultAbi, functionName: 'setMaxPriceAge', args: [3_600n] })
    const data = encodeFunctionData({
      abi: timelockAbi,
      functionName: 'execute',
      args: [at('MandateVault'), 0n, payload, zeroHash, zeroHash],
    })
    expect(bySide(describeCall({ to: at('Timelock'), data }, known))).toEqual([
      ['Execute an operation of the timelock', expect.objectContaining({ target: 'MandateVault' })],
      ['Set max price age', { vault: 'MandateVault', 'max price age': '1 h' }],
    ])
  })

  it('a posted price has its token and its dollars', () => {
    const item = priceOracleAbi.find(each => each.type === 'event' && each.name === 'PriceUpdated')
    if (item?.type !== 'event') throw new Error('The oracle has no PriceUpdated event.')
    const topics = encodeEventTopics({ abi: [item], args: { asset: NVDA } } as never) as Hex[]
    const values = { price: 11_825_000_000n, observedAt: 1_700_000_000n, roundId: 4n }
    const inData = item.inputs.filter(({ indexed }) => !indexed)
    const data = encodeAbiParameters(
      inData,
      inData.map(({ name }) => values[name as keyof typeof values]),
    )
    const event = describeEvent({ address: at('PriceOracle'), topics, data }, known)
    expect(event && bySide([event])).toEqual([
      ['Price updated', { token: 'NVDA', price: '118.25 USD', 'observed at': '2023-11-14T22:13:20Z' }],
    ])
  })

  it('calldata that is cut, of a stranger or endlessly nested is not described further', () => {
    const exit = encodeFunctionData({ abi: tradeRouterAbi, functionName: 'executeExit', args: [1n] })
    expect(describeCall({ to: at('TradeRouter'), data: exit.slice(0, 40) as Hex }, known)).toEqual([])
    expect(describeCall({ to: OWNER, data: exit }, known)).toEqual([])
    let nested: Hex = exit
    for (let depth = 0; depth < 10; depth++)
      nested = encodeFunctionData({
        abi: tradeRouterAbi,
        functionName: 'withPrices',
        args: [[], [], at('PriceOracle'), nested],
      })
    expect(describeCall({ to: at('TradeRouter'), data: nested }, known)).toHaveLength(4)
  })
})
