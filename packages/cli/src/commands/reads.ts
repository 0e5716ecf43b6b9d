import { type ReadDescription, type ReadId, readDescriptions, readPaths } from '@agent-trading-service/client'
import { type Command, Option } from 'commander'
import { Failure } from '../failure.ts'
import { createPrinter } from '../output/printer.ts'
import { withProgress } from '../output/progress.ts'
import { kebab, readCommandName } from '../output/read-command-name.ts'
import { createReader } from '../trading/create-reader.ts'
import { agentOption, createServiceCommand, type ServiceOptions } from './options.ts'

type ReadInput = Record<string, string | undefined>
type ReadPath = { path: string; query: readonly string[] }

/**
 * Reads that another command has: quotes (`ats quote …`), the mandate (`ats mandate`), orders (`ats orders`, `ats order
 * show`), a vault (`ats vault`) and its requests (`ats vault requests`).
 */
const isElsewhere = (id: string, path: string) =>
  path.endsWith('/quote') || ['getMandate', 'listOrders', 'getOrder', 'getVault', 'listVaultRequests'].includes(id)

/** The query parameter that may also be the last argument: `ats depth NVDA 1000`. */
const argumentsByRead: Record<string, string> = { getDepth: 'usdcAmount', getCandles: 'interval' }

/** One command for each operation that reads: `listPositions` is `ats positions`. */
export function readCommands(): Command[] {
  return Object.entries(readPaths as Record<string, ReadPath>)
    .filter(([id, { path }]) => !isElsewhere(id, path))
    .map(([id, read]) => readCommand(id as ReadId, read))
}

function readCommand(id: ReadId, { path, query }: ReadPath): Command {
  const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '')
  const positional = parameters.filter(name => name !== 'agentId')
  const takesAgent = positional.length < parameters.length
  const name = readCommandName(id)
  const last = argumentsByRead[id]
  const named = last === undefined ? positional : [...positional, last]
  const example = ['ats', name, ...named.map(exampleOf), ...(takesAgent ? ['--agent 1'] : [])].join(' ')
  const described: ReadDescription | undefined = readDescriptions[id]
  const { summary = path, parameters: about = {} } = described ?? {}
  const command = createServiceCommand(name, `${summary.charAt(0).toLowerCase()}${summary.slice(1)}`, example)
  command.option('--wide', 'show every column')
  for (const parameter of positional) command.argument(`<${parameter}>`, about[parameter]?.description ?? '')
  if (last !== undefined) command.argument(`[${kebab(last)}]`, about[last]?.description ?? '')
  if (takesAgent) command.addOption(agentOption())
  const options = query.map(parameter => {
    const { description = '', choices } = about[parameter] ?? {}
    const option = new Option(`--${kebab(parameter)} <value>`, description || words(parameter))
    return { parameter, option: choices ? option.choices(choices) : option }
  })
  for (const { option } of options) command.addOption(option)
  return command.action((...given: unknown[]) => {
    const values = command.opts<ServiceOptions & { agent?: string } & ReadInput>()
    const input: ReadInput = takesAgent ? { agentId: values.agent } : {}
    for (const [index, parameter] of positional.entries()) input[parameter] = given[index] as string
    for (const { parameter, option } of options) input[parameter] = values[option.attributeName()]
    if (last !== undefined) input[last] ??= given[positional.length] as string | undefined
    return readAndPrint(id, values, input)
  })
}

/** Calls a read and prints its response. Throws `AGENT_MISSING` if it needs an agent and none is given. */
export async function readAndPrint(
  id: ReadId,
  { output, wide, ...service }: ServiceOptions & { wide?: boolean | undefined },
  input: ReadInput,
): Promise<void> {
  if ('agentId' in input && input.agentId === undefined) throw agentMissing()
  const read = createReader(service)[id] as (input: ReadInput) => Promise<unknown>
  createPrinter(output, { wide, of: id }).result(await withProgress(words(id), read(input)))
}

export const agentMissing = (): Failure =>
  new Failure('usage', 'This needs the id of an agent.', {
    code: 'AGENT_MISSING',
    remedy: 'Pass --agent <id>, or set ATS_AGENT.',
  })

/** Returns a name in camel case as words. */
const words = (name: string) => kebab(name).replaceAll('-', ' ')

const examples: Record<string, string> = {
  id: 'genesis',
  symbol: 'NVDA',
  owner: '0x…',
  txHash: '0x…',
  digest: '0x…',
  usdcAmount: '1000',
  interval: '1h',
}
const exampleOf = (parameter: string) => examples[parameter] ?? '1'
