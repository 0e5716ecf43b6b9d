import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { isTicker } from '@agent-trading-service/protocol/message-terms'
import { Command, InvalidArgumentError, Option } from 'commander'
import { Failure } from '../failure.ts'
import { integer, serviceUrl } from './options.ts'

export const MARKET_KINDS = ['gbm', 'jumps', 'trend', 'crash'] as const
export type MarketKind = (typeof MARKET_KINDS)[number]

/** A file of prices; `symbol` is set if all of them are of this token. */
export type TapeFile = { path: string; symbol: string | undefined }

/** The options of a rehearsal; `agent` are commands for a shell, the arguments one program. */
export type RehearseOptions = {
  agent: string[]
  tape: TapeFile[]
  /** The zone of times without an offset. */
  tz?: string
  /** Which extreme of a candle comes first. */
  path: 'natural' | 'pessimistic'
  /** The base URL of a deployment that is played live. */
  mirror?: string
  chainId: number
  market?: MarketKind
  vol?: number
  drift?: number
  correlation?: number
  days: number
  seed: number
  hours: 'market' | 'all'
  stale?: string
  speed?: number
  report?: string
  json?: string
  require?: string
}

/** Returns the command `rehearse` with its options; `run` gets them and the program after `--`. */
export function createRehearseCommand(run: (program: string[], options: RehearseOptions) => Promise<void>): Command {
  return new Command('rehearse')
    .description('play a market to an agent on the embedded chain, and report how it did')
    .argument('[program...]', 'the agent under test and its arguments, after --')
    .option('--agent <command>', 'an agent under test, once for each', (each, all: string[]) => [...all, each], [])
    .addOption(tapeOption().conflicts(['market', 'vol', 'drift', 'correlation']))
    .addOption(zoneOption())
    .addOption(pathOption())
    .addOption(
      new Option('--mirror <url>', 'a deployment, live: its vaults, tokens, policies and prices')
        .conflicts(['tape', 'market', 'vol', 'drift', 'correlation', 'stale', 'speed'])
        .argParser(serviceUrl),
    )
    .addOption(chainIdOption())
    .addOption(new Option('--market <kind>', 'generate prices').choices(MARKET_KINDS))
    .option('--vol <percent>', 'volatility in a year', decimal(0, 1_000))
    .option('--drift <percent>', 'drift in a year', decimal(-1_000, 1_000))
    .option('--correlation <number>', 'between the tokens, from 0 to 1', decimal(0, 1))
    .addOption(new Option('--days <n>', 'length of a generated market').default(30).argParser(integer(1, 366)))
    .addOption(new Option('--seed <n>', 'same seed, same market').default(7).argParser(integer(0, 999_999_999)))
    .addOption(hoursOption())
    .option('--stale <symbol>', 'a token whose prices end in the middle of a generated market')
    .option('--speed <factor>', 'play in scaled real time, for agents that cannot wait', decimal(1, 100_000))
    .option('--report <file>', 'write the report as one HTML page')
    .option('--json <file>', 'write the report as JSON')
    .option('--require <bar>', 'fail unless it holds, such as "return>0 and drawdown<5%"')
    .addHelpText(
      'after',
      `
Example:
  $ ats rehearse --market gbm --days 30 --seed 7 --report report.html -- node agent.mjs
  $ ats rehearse --mirror https://api.example -- node agent.mjs
  $ ats rehearse --tape day.csv --agent "node a.mjs" --agent "python b.py" --require "return>0 and drawdown<5%"

The agent gets BASE, RPC_URL, AGENT_KEY and ATS_AGENT, trades on the ordinary API, and calls POST /rehearsal/advance.`,
    )
    .action(run)
}

export const tapeOption = () =>
  new Option('--tape <file>', 'prices as CSV, or SYMBOL=<file>, once for each')
    .default([], 'none')
    .argParser((each: string, all: TapeFile[]) => [...all, tapeFile(each)])
export const zoneOption = () =>
  new Option('--tz <zone>', 'zone of times without an offset, such as America/New_York').argParser(timeZone)
export const pathOption = () =>
  new Option('--path <path>', 'play the low of each candle before its high, whatever its direction')
    .choices(['natural', 'pessimistic'])
    .default('natural')
export const chainIdOption = () =>
  new Option('--chain-id <id>', 'id of the embedded chain').default(31_337).argParser(integer(1, 999_999_999))
export const hoursOption = () =>
  new Option('--hours <hours>', 'bars in the hours of the exchange, or in all')
    .choices(['market', 'all'])
    .default('market')

/** Lets the packages of a clone be imported from their sources. */
const SOURCE = '--conditions=@agent-trading-service/source'

/** `ats rehearse`: runs in a clone of the repository, which has the embedded chain. */
export const rehearseCommand = (): Command => createRehearseCommand(() => runInClone('rehearse'))

/** Runs the script of a command in the clone that the working directory is in. Throws a failure if it is in none. */
export async function runInClone(command: 'rehearse' | 'examine'): Promise<void> {
  const clone = findClone(process.cwd())
  if (clone === undefined)
    throw new Failure(
      'usage',
      'A rehearsal needs the embedded chain and the service, which are not part of this package.',
      {
        code: 'CLONE_REQUIRED',
        remedy: `Clone the repository, run \`npm ci\` there, and call \`ats ${command}\` within it, or \`npm run ${command}\`.`,
      },
    )
  const args = process.argv.slice(process.argv.indexOf(command) + 1)
  // The clone brings its own version of Node.js and its tools, which the scripts and those that they start need.
  const bin = join(clone, 'node_modules/.bin')
  const env = { ...process.env, PATH: [bin, process.env.PATH].join(delimiter) }
  const script = spawn('node', [SOURCE, join(clone, `scripts/${command}.ts`), ...args], { stdio: 'inherit', env })
  process.exitCode = await new Promise<number>((resolve, reject) =>
    script.once('error', reject).once('exit', code => resolve(code ?? 1)),
  )
}

/** Returns the clone that a folder is in; undefined if it is in none. */
function findClone(folder: string): string | undefined {
  const manifest = join(folder, 'package.json')
  const isClone =
    existsSync(join(folder, 'scripts/rehearse.ts')) &&
    existsSync(manifest) &&
    JSON.parse(readFileSync(manifest, 'utf8')).name === 'agent-trading-service'
  if (isClone) return folder
  const parent = dirname(folder)
  return parent === folder ? undefined : findClone(parent)
}

/** Returns a tape's file; a symbol before it is that of every row. */
function tapeFile(text: string): TapeFile {
  const [, symbol = '', path = ''] = /^([^=]+)=(.+)$/.exec(text) ?? []
  return isTicker(symbol) ? { symbol, path } : { symbol: undefined, path: text }
}

function timeZone(text: string): string {
  if (isTimeZone(text)) return text
  throw new InvalidArgumentError('A zone such as America/New_York or UTC is expected.')
}

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

const decimal = (min: number, max: number) => (text: string) => {
  const value = Number(text)
  if (/^-?\d{1,9}(\.\d{1,6})?$/.test(text) && value >= min && value <= max) return value
  throw new InvalidArgumentError(`A number from ${min} to ${max} is expected.`)
}
