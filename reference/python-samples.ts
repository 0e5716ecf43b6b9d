import type { RequestValues, SampleOperation } from './sample-types.ts'

// Samples with the Python client. An operation that it does not have is called with the standard library.

const PACKAGE = 'agent_trading_service'

type Body = Record<string, unknown>

/** The client's call for each operation that is signed, from the fields of the body. */
const signedCalls: Record<string, (agent: string, body: Body, path: Record<string, string>) => string | undefined> = {
  registerAgent: (_, { name, vault, metadataURI }) =>
    `client.register(name=${text(name)}, vault=${text(vault)}, metadata_uri=${text(metadataURI)})`,
  submitTradeIntent: (agent, { symbol, usdcAmount, exits }) =>
    `client.agent(${agent}).open(${text(symbol)}, usdc=${text(usdcAmount)}, exits=${rules(exits)})`,
  submitAddIntent: (agent, { positionId, usdcAmount }) =>
    `client.agent(${agent}).add(${number(positionId)}, usdc=${text(usdcAmount)})`,
  submitReduceIntent: (agent, { positionId, exitBps }) =>
    `client.agent(${agent}).reduce(${number(positionId)}, ${number(exitBps)})`,
  submitExitLadderIntent: (agent, { positionId, exits }) =>
    `client.agent(${agent}).set_ladder(${number(positionId)}, exits=${rules(exits)})`,
  setMandate: (agent, body) => `client.owner(${agent}).set_mandate(${mandate(body)})`,
  stopAgent: (agent, { action }) => `client.owner(${agent}).stop(${action === 'flatten' ? 'sell=True' : ''})`,
  offerOwnership: (agent, { newOwner }) => `client.owner(${agent}).transfer(${text(newOwner)})`,
  acceptOwnership: (agent, { signer }) => `client.owner(${agent}).accept_transfer(${text(signer)})`,
  setSigner: (agent, { signer }) => `client.owner(${agent}).set_signer(${text(signer)})`,
  cancelIntents: (agent, { untilNonce }) => `client.owner(${agent}).cancel(${number(untilNonce)})`,
  lockFirstLoss: (agent, { shares }) => `client.owner(${agent}).lock_first_loss(${number(shares)})`,
  linkErc8004: (agent, { erc8004AgentId }) => `client.owner(${agent}).link_erc8004(${number(erc8004AgentId)})`,
  submitOrder: orderCall,
  cancelOrder: (agent, _, { orderId }) => `client.agent(${agent}).orders.cancel(${text(orderId)})`,
}

/** Returns a program that uses the client; undefined if the client lacks the operation. */
export function sampleWithPython(base: string, operation: SampleOperation, values: RequestValues): string | undefined {
  const { id, method, isStream } = operation
  const given = Object.entries(values.query).filter(([, value]) => value !== '')
  const reading = `from ${PACKAGE} import Client

with Client(${text(base)}) as client:
`
  if (isStream) {
    const { agentId } = values.path
    const { vault, symbols } = values.query
    const filters = [
      agentId && `agent_id=${number(agentId)}`,
      vault && `vault=${text(vault)}`,
      symbols && `symbols=[${symbols.split(',').map(text).join(', ')}]`,
    ].filter(Boolean)
    return `${reading}    for event in client.events(${filters.join(', ')}):
        print(event)`
  }
  if (method === 'get') {
    if (operation.isText) return undefined
    const argument = ([name, value]: [string, string]) =>
      operation.numbers.includes(name) ? number(value) : text(value)
    const parts = Object.entries(values.path).map(argument)
    const filters = given.map(([name, value]) => `${snake(name)}=${argument([name, value])}`)
    return `${reading}    print(client.${snake(id)}(${[...parts, ...filters].join(', ')}))`
  }
  const body = values.body as Body | undefined
  if (body === undefined) return undefined
  const agent = number(values.path.agentId)
  if (id === 'verifySignature') return `${reading}    print(client.verify_signature(${pythonLiteral(body, 4)}))`
  if (id === 'whatIf')
    return `${reading}    print(client.agent(${agent}).what_if(prices=${pythonLiteral(body.prices)}, intents=${pythonLiteral(body.intents, 4)}))`
  const call = signedCalls[id]?.(agent, body, values.path)
  if (call === undefined) return undefined
  const names = ['Client', ...(call.includes('ExitRule(') ? ['ExitRule'] : [])].join(', ')
  const fee = operation.isPaid
    ? '    # Where a fee is due, also pass payer=Payer(account, chain_id, asset, max_amount).\n'
    : ''
  return `import os

from eth_account import Account
from ${PACKAGE} import ${names}

# Pass \`pins\` and \`rpc_url\` where money is at stake: the client then signs for no other contract.
with Client(${text(base)}, account=Account.from_key(os.environ["KEY"])) as client:
${fee}    print(${call})`
}

const text = (value: unknown): string => JSON.stringify(`${value ?? ''}`)
const number = (value: unknown): string => (/^\d+$/.test(`${value}`) ? `${value}` : '0')
/** Returns a name as Python writes it. */
const snake = (name: string) => {
  const words = name.replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, '_').toLowerCase()
  return words === 'from' ? 'from_' : words
}

/** Returns a value as a Python literal. `indent` is the number of spaces before each line but the first. */
export function pythonLiteral(value: unknown, indent = 0): string {
  const literal = JSON.stringify(value, null, indent > 0 ? 4 : undefined).replace(
    /("(?:[^"\\]|\\.)*")|\b(true|false|null)\b/g,
    (match, quoted) => quoted ?? { true: 'True', false: 'False', null: 'None' }[match as 'true'],
  )
  return literal.replaceAll('\n', `\n${' '.repeat(indent)}`)
}

/** The methods of orders that wait for a price, by condition and by whether they sell. */
const ORDER_METHODS: Record<string, [buying: string, selling: string]> = {
  atOrBelow: ['limit', 'stop'],
  atOrAbove: ['breakout', 'take_profit'],
}

function orderCall(agent: string, body: Body): string | undefined {
  const { side, symbol, positionId, condition, usdcAmount, exitBps, price, exits } = body
  const sells = side === 'reduce'
  const method = ORDER_METHODS[`${condition}`]?.[sells ? 1 : 0]
  if (method === undefined) return undefined
  const traded = sells ? `share=${number(exitBps)}` : `usdc=${text(usdcAmount)}`
  const ladder = side === 'open' ? `, exits=${rules(exits)}` : ''
  const target = side === 'open' ? text(symbol) : number(positionId)
  return `client.agent(${agent}).orders.${method}(${target}, ${traded}, at=${text(price)}${ladder})`
}

function rules(exits: unknown): string {
  const list = Array.isArray(exits) ? exits : []
  return `[${list.map(({ triggerBps, exitBps }) => `ExitRule(${triggerBps}, ${exitBps})`).join(', ')}]`
}

const MANDATE_FIELDS: [field: string, argument: string][] = [
  ['maxTradeUsdc', 'max_trade_usdc'],
  ['maxDailyTurnoverUsdc', 'max_daily_turnover_usdc'],
  ['maxExposureUsdc', 'max_exposure_usdc'],
]

function mandate({ mode, allowedTokens, validUntil, ...limits }: Body): string {
  return [
    text(mode),
    ...MANDATE_FIELDS.flatMap(([field, argument]) =>
      limits[field] === undefined ? [] : [`${argument}=${text(limits[field])}`],
    ),
    ...(Array.isArray(allowedTokens) ? [`allowed_tokens=[${allowedTokens.map(text).join(', ')}]`] : []),
    ...(validUntil === undefined ? [] : [`valid_until=${number(validUntil)}`]),
  ].join(', ')
}
