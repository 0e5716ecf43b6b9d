import type { RequestValues, SampleOperation } from './sample-types.ts'

// Samples with the Python client. An operation that it does not have is called with the standard library.

const PACKAGE = 'agent_trading_service'

type Body = Record<string, unknown>

/** The client's call for each operation that is signed, from the fields of the body. */
const signedCalls: Record<string, (agent: string, body: Body) => string> = {
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
}

/** Returns a program that uses the client; undefined if the client lacks the operation. */
export function sampleWithPython(base: string, operation: SampleOperation, values: RequestValues): string | undefined {
  const { id, method, path, isStream } = operation
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
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values.path[name] || `{${name}}`))
    return `${reading}    print(client.get(${[text(filled), ...given.map(queryArgument)].join(', ')}))`
  }
  const call = signedCalls[id]
  if (call === undefined || values.body === undefined) return undefined
  return `import os

from eth_account import Account
from ${PACKAGE} import Client, ExitRule

# Pass \`pins\` and \`rpc_url\` where money is at stake: the client then signs for no other contract.
with Client(${text(base)}, account=Account.from_key(os.environ["KEY"])) as client:
    print(${call(number(values.path.agentId), values.body as Body)})`.replace(
    ', ExitRule',
    'exits' in (values.body as Body) ? ', ExitRule' : '',
  )
}

const text = (value: unknown): string => JSON.stringify(`${value ?? ''}`)
const number = (value: unknown): string => (/^\d+$/.test(`${value}`) ? `${value}` : '0')
const queryArgument = ([name, value]: [string, string]) =>
  /^(from|at)$/.test(name) ? `**{${text(name)}: ${text(value)}}` : `${name}=${text(value)}`

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
