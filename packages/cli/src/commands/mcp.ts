import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import { readTools } from '../generated/read-tools.ts'
import { findKey, homeFolder, listKeys } from '../keys/key-folder.ts'
import { readPassword } from '../keys/password.ts'
import { limitsPath, readLimits } from '../limits/limits-file.ts'
import { DEFAULT_TOOLSETS, hosts, type McpHost, mcpConfig } from '../mcp/config.ts'
import { clean, cleanLines, printableJson } from '../output/clean.ts'
import { toFailure } from '../output/to-failure.ts'
import { openTrader } from '../trading/open-trader.ts'
import { serviceFetch } from '../trading/service-url.ts'
import { VERSION } from '../version.ts'
import {
  agentOption,
  createServiceCommand,
  keyOption,
  maxFeeOption,
  passwordFileOption,
  payerOption,
  payerPasswordFileOption,
  rpcOption,
  type SigningOptions,
} from './options.ts'

type McpOptions = SigningOptions & {
  agent?: string
  allow?: 'trade'
  payer?: string
  payerPasswordFile?: string
  maxFee?: string
  toolsets: readonly string[]
}

const toolsets = Object.keys(readTools)

/** `ats mcp`: the local MCP server over stdio. stdout carries the protocol only. */
export function mcpCommand(): Command {
  return (
    withMcpOptions(
      createServiceCommand(
        'mcp',
        'run the local MCP server over stdio: reads, and with --allow trade also tools that sign',
        'ats mcp --allow trade --agent 1',
        'ats mcp config claude-desktop --allow trade --agent 1',
      ),
    )
      .action(serve)
      // The command below has options of the same names.
      .enablePositionalOptions()
      .addCommand(
        withMcpOptions(
          createServiceCommand(
            'config',
            'print the configuration of an MCP host that starts `ats mcp` with these options',
            'ats mcp config claude-desktop --allow trade --agent 1',
          ),
        )
          .addArgument(new Argument('<host>', 'the program that starts the server').choices(Object.keys(hosts)))
          .action(config),
      )
  )
}

const withMcpOptions = (command: Command) =>
  command
    .addOption(new Option('--allow <what>', 'also offer tools that sign').choices(['trade']))
    .addOption(agentOption())
    .addOption(keyOption())
    .addOption(passwordFileOption())
    .addOption(payerOption())
    .addOption(payerPasswordFileOption())
    .addOption(maxFeeOption())
    .option(
      '--toolsets <sets>',
      `read tools to offer: ${toolsets.join(', ')} or all, separated by commas`,
      parseToolsets,
      DEFAULT_TOOLSETS,
    )
    .addOption(rpcOption())
    .option('-y, --yes', 'sign without asking; set limits.json first')

/** Returns the tool sets that a text names. */
function parseToolsets(text: string): readonly string[] {
  const named = text.split(',')
  const unknown = named.find(set => set !== 'all' && !toolsets.includes(set))
  if (unknown !== undefined) throw new InvalidArgumentError(`There is no tool set ${unknown}.`)
  return toolsets.filter(set => named.includes('all') || named.includes(set))
}

async function serve({ allow, agent, yes, toolsets, ...options }: McpOptions): Promise<void> {
  const home = homeFolder()
  const [{ serveStdio }, { createLocalServer }, { createRemoteTools }] = await Promise.all([
    import('@modelcontextprotocol/server/stdio'),
    import('../mcp/server.ts'),
    import('../mcp/remote-tools.ts'),
  ])
  const note = (text: string) => process.stderr.write(`ats mcp: ${clean(text)}\n`)
  const remote = createRemoteTools(options.url, VERSION, serviceFetch)
  const handle = serveStdio(
    () =>
      createLocalServer({
        version: VERSION,
        home,
        url: options.url,
        remote,
        agentId: agent,
        asks: !yes,
        toolsets,
        ...(allow === 'trade' && {
          async openTrader() {
            const trader = await openTrader(home, { ...options, agent, canAskPassword: false })
            // Throws before anything is quoted, and before a slow decryption.
            await readPassword(options, { name: options.key ?? 'that signs', canAsk: false })
            return trader
          },
        }),
      }),
    { onerror: error => note(error.message) },
  )
  note(
    `${allow === 'trade' ? 'signs with local keys' : 'read-only'}, service ${options.url}, waiting for a client on stdin.`,
  )
  if (allow === 'trade') warn(home, { yes: yes === true, key: options.key }, note)
  process.once('SIGTERM', () => void handle.close().then(() => remote.close()))
  process.stdin.once('end', () => void remote.close())
}

/** Notes what will keep a tool from signing. The tool's call explains it too, so the server starts nevertheless. */
function warn(
  home: string,
  { yes, key }: { yes: boolean; key: string | undefined },
  note: (text: string) => void,
): void {
  try {
    if (key !== undefined || listKeys(home).keys.length < 2) findKey(home, key)
    if (readLimits(home) === undefined && yes)
      note(`signs without asking and without limits; set them in ${limitsPath(home)}.`)
  } catch (error) {
    const { message, commandRemedy = '' } = toFailure(error)
    note(`${message} ${commandRemedy}`)
  }
}

/** `ats mcp config`: the JSON goes to stdout, and where it belongs to stderr. */
function config(host: McpHost, { yes, ...options }: McpOptions): void {
  const { json, notes } = mcpConfig(host, homeFolder(), { ...options, asks: !yes })
  process.stdout.write(`${printableJson(json, 2)}\n`)
  process.stderr.write(`${cleanLines(notes.join('\n'))}\n`)
}
