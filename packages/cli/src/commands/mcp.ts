import { type Command, Option } from 'commander'
import { homeFolder } from '../keys/key-folder.ts'
import { limitsPath, readLimits } from '../limits/limits-file.ts'
import { clean } from '../output/clean.ts'
import { openTrader } from '../trading/open-trader.ts'
import { VERSION } from '../version.ts'
import {
  agentOption,
  createServiceCommand,
  keyOption,
  maxFeeOption,
  passwordFileOption,
  payerOption,
  payerPasswordFileOption,
  type SigningOptions,
} from './options.ts'

type McpOptions = SigningOptions & { agent?: string; allow?: 'trade'; payer?: string; payerPasswordFile?: string }

/** `ats mcp`: the local MCP server over stdio. stdout carries the protocol only. */
export function mcpCommand(): Command {
  return createServiceCommand(
    'mcp',
    'run the local MCP server over stdio: reads, and with --allow trade also tools that sign',
    'ats mcp --allow trade --agent 1',
  )
    .addOption(new Option('--allow <what>', 'also offer tools that sign').choices(['trade']))
    .addOption(agentOption())
    .addOption(keyOption())
    .addOption(passwordFileOption())
    .addOption(payerOption())
    .addOption(payerPasswordFileOption())
    .addOption(maxFeeOption())
    .option('--rpc <url>', 'node that confirms the contracts and the chain before anything is signed')
    .option('-y, --yes', 'sign without asking; set limits.json first')
    .action(serve)
}

async function serve({ allow, agent, yes, ...options }: McpOptions): Promise<void> {
  const home = homeFolder()
  const [{ serveStdio }, { createLocalServer }, { createRemoteTools }] = await Promise.all([
    import('@modelcontextprotocol/server/stdio'),
    import('../mcp/server.ts'),
    import('../mcp/remote-tools.ts'),
  ])
  const trader = allow === 'trade' ? await openTrader(home, { ...options, agent, canAskPassword: false }) : undefined
  if (trader) {
    await trader.unlock()
    // Throws now if the file is broken, rather than at the first trade.
    const limits = readLimits(home)
    if (yes && limits === undefined)
      process.stderr.write(`ats mcp: signs without asking and without limits; set them in ${limitsPath(home)}.\n`)
  }
  const remote = createRemoteTools(options.url, VERSION)
  const handle = serveStdio(() => createLocalServer({ version: VERSION, home, remote, trader, asks: !yes }), {
    onerror: error => process.stderr.write(`ats mcp: ${clean(error.message)}\n`),
  })
  process.stderr.write(
    `ats mcp: ${trader ? `signs with ${trader.address}` : 'read-only'}, service ${options.url}, waiting for a client on stdin.\n`,
  )
  process.once('SIGTERM', () => void handle.close().then(() => remote.close()))
  process.stdin.once('end', () => void remote.close())
}
