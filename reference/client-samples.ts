import type { RequestValues, SampleOperation } from './sample-types.ts'

// Samples with the TypeScript client. An operation that it does not have is called with fetch.

const PACKAGE = '@agent-trading-service/client'
/** Fields that the client fills in. */
const OWN_FIELDS = [
  'deadline',
  'nonce',
  'signature',
  'minTokenOut',
  'maxSlippageBps',
  'signer',
  'linkERC8004',
  'erc8004AgentId',
]

/** The client's call for each operation that is signed. */
const signedCalls: Record<string, (agent: string) => string> = {
  registerAgent: () => 'client.register',
  submitTradeIntent: agent => `client.agent(${agent}).open`,
  submitAddIntent: agent => `client.agent(${agent}).add`,
  submitReduceIntent: agent => `client.agent(${agent}).reduce`,
  submitExitLadderIntent: agent => `client.agent(${agent}).setLadder`,
  setMandate: agent => `client.owner(${agent}).setMandate`,
  stopAgent: agent => `client.owner(${agent}).stop`,
  offerOwnership: agent => `client.owner(${agent}).transfer`,
  acceptOwnership: agent => `client.owner(${agent}).acceptTransfer`,
  setSigner: agent => `client.owner(${agent}).setSigner`,
  cancelIntents: agent => `client.owner(${agent}).cancel`,
  lockFirstLoss: agent => `client.owner(${agent}).lockFirstLoss`,
  linkErc8004: agent => `client.owner(${agent}).linkErc8004`,
}
/** Operations whose own field has the name of one that the client fills in elsewhere. */
const GIVEN_FIELDS: Record<string, string> = {
  acceptOwnership: 'signer',
  setSigner: 'signer',
  linkErc8004: 'erc8004AgentId',
}

/** Returns a program that uses the client; undefined if the client lacks the operation. */
export function sampleWithClient(base: string, operation: SampleOperation, values: RequestValues): string | undefined {
  const { id, method, isStream } = operation
  const { agentId = '' } = values.path
  const baseUrl = literal(base)
  const reading = `import { createClient } from '${PACKAGE}'

const client = createClient({ baseUrl: ${baseUrl} })
`
  if (isStream) {
    const input = inputOf({ ...values.path, ...values.query }, [])
    return `${reading}for await (const event of client.events(${input})) console.log(event)`
  }
  if (method === 'get')
    return `${reading}console.log(await client.${id}(${inputOf({ ...values.path, ...values.query }, operation.numbers)}))`
  if (id === 'verifySignature') return `${reading}console.log(await client.verifySignature(${literal(values.body)}))`
  const call = signedCalls[id]?.(literal(agentId))
  if (call === undefined || values.body === undefined) return undefined
  const fields = Object.entries(values.body as Record<string, unknown>).filter(
    ([name]) => !OWN_FIELDS.includes(name) || GIVEN_FIELDS[id] === name,
  )
  const input = Object.fromEntries(
    fields.map(([name, value]) => [name, name === 'exits' ? withoutTypes(value) : value]),
  )
  return operation.isPaid ? paidSample(base, input) : signedSample(base, call, input)
}

const signedSample = (base: string, call: string, input: unknown) => `import { createClient } from '${PACKAGE}'
import { privateKeyToAccount } from 'viem/accounts'

const account = privateKeyToAccount(process.env.KEY as \`0x\${string}\`)
// Pass \`pins\` and \`rpcUrl\` where money is at stake: the client then signs for no other contract.
const client = createClient({ baseUrl: ${literal(base)}, account })
console.log(await ${call}(${literal(input)}))`

const paidSample = (base: string, input: Record<string, unknown>) => `import { createClient } from '${PACKAGE}'
import { createPayer } from '${PACKAGE}/pay'
import { privateKeyToAccount } from 'viem/accounts'

const account = privateKeyToAccount(process.env.KEY as \`0x\${string}\`)
const client = createClient({ baseUrl: ${literal(base)}, account })
const { registrationFee, x402 } = await client.getRegistrationQuote()
const payer = createPayer({
  account: privateKeyToAccount(process.env.PAYER_KEY as \`0x\${string}\`),
  chainId: Number(\`\${x402.network}\`.split(':')[1]),
  asset: registrationFee.tokenAddress as \`0x\${string}\`,
  maxAmount: 5_000_000n, // at most 5 USDC
})
const registration = ${literal(input)}
console.log(await client.register({ ...registration, payer }))`

/** The client tells stop-losses from take-profits by their sign. */
const withoutTypes = (exits: unknown) =>
  Array.isArray(exits) ? exits.map(({ triggerBps, exitBps }) => ({ triggerBps, exitBps })) : exits

function inputOf(parameters: Record<string, string>, numbers: readonly string[]): string {
  const given = Object.entries(parameters).filter(([, value]) => value !== '')
  if (given.length === 0) return ''
  return literal(
    Object.fromEntries(given.map(([name, value]) => [name, numbers.includes(name) ? Number(value) : value])),
  )
}

const MAX_LINE = 80

/** Returns a value as TypeScript writes it: on one line where it fits. */
function literal(value: unknown, indent = ''): string {
  if (typeof value === 'string') return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
  if (typeof value !== 'object' || value === null) return String(value)
  const inner = `${indent}  `
  const partsAt = (at: string) =>
    Array.isArray(value)
      ? value.map(entry => literal(entry, at))
      : Object.entries(value).map(
          ([name, entry]) => `${/^\w+$/.test(name) ? name : literal(name)}: ${literal(entry, at)}`,
        )
  const [open, close, pad] = Array.isArray(value) ? ['[', ']', ''] : ['{', '}', ' ']
  const line = `${open}${pad}${partsAt('').join(', ')}${pad}${close}`
  if (line.length + indent.length <= MAX_LINE && !line.includes('\n')) return line
  return `${open}\n${partsAt(inner)
    .map(part => `${inner}${part},\n`)
    .join('')}${indent}${close}`
}
