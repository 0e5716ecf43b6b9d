import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { limitsPath } from '../limits/limits-file.ts'
import { DEFAULT_MAX_FEE } from '../trading/fee-payer.ts'

export type McpHost = keyof typeof hosts

/** The tool sets whose reads `ats mcp` offers by default. */
export const DEFAULT_TOOLSETS: readonly string[] = ['market', 'agents', 'trade', 'orders', 'history', 'venue']

type Server = { command: string; args: string[]; env: Record<string, string> }

/**
 * The programs that start a local MCP server: where their configuration is, its shape, and whether they can ask the
 * user.
 */
export const hosts = {
  'claude-desktop': {
    file: 'claude_desktop_config.json (Settings, Developer, Edit Config)',
    shape: (ats: Server) => ({ mcpServers: { ats } }),
    canAsk: false,
  },
  'claude-code': {
    file: '.mcp.json in the folder of the project',
    shape: (ats: Server) => ({ mcpServers: { ats: { type: 'stdio', ...ats } } }),
    canAsk: true,
  },
  cursor: {
    file: '.cursor/mcp.json in the folder of the project, or ~/.cursor/mcp.json',
    shape: (ats: Server) => ({ mcpServers: { ats } }),
    canAsk: true,
  },
  vscode: {
    file: '.vscode/mcp.json in the folder of the project',
    shape: (ats: Server) => ({ servers: { ats: { type: 'stdio', ...ats } } }),
    canAsk: true,
  },
} as const

export type McpConfigOptions = {
  url: string
  allow?: 'trade' | undefined
  agent?: string | undefined
  key?: string | undefined
  passwordFile?: string | undefined
  payer?: string | undefined
  payerPasswordFile?: string | undefined
  maxFee?: string | undefined
  rpc?: string | undefined
  toolsets: readonly string[]
  asks: boolean
}

/** Returns the configuration that starts `ats mcp` with the given options, and what the user has to know. */
export function mcpConfig(host: McpHost, home: string, options: McpConfigOptions) {
  const { file, shape, canAsk } = hosts[host]
  const { url, allow, agent, key, payer, maxFee, rpc, toolsets, asks } = options
  const passwordFile = resolve(options.passwordFile ?? join(home, 'password'))
  const payerPasswordFile = options.payerPasswordFile && resolve(options.payerPasswordFile)
  // Windows runs npx through its command interpreter only.
  const runner = process.platform === 'win32' ? { command: 'cmd', first: ['/c', 'npx'] } : { command: 'npx', first: [] }
  const args = [
    ...runner.first,
    '-y',
    '@agent-trading-service/cli',
    'mcp',
    ...(allow ? ['--allow', allow] : []),
    ...(maxFee !== undefined && maxFee !== DEFAULT_MAX_FEE ? ['--max-fee', maxFee] : []),
    ...(rpc === undefined ? [] : ['--rpc', rpc]),
    ...(toolsets === DEFAULT_TOOLSETS ? [] : ['--toolsets', toolsets.join(',')]),
    ...(asks ? [] : ['--yes']),
  ]
  // The host starts the server without the variables of a shell.
  const env = {
    ATS_URL: url,
    ...(home !== join(homedir(), '.config', 'ats') && { ATS_HOME: resolve(home) }),
    ...(agent !== undefined && { ATS_AGENT: agent }),
    ...(key !== undefined && { ATS_KEY: key }),
    ...(payer !== undefined && { ATS_PAYER: payer }),
    ...(payerPasswordFile !== undefined && { ATS_PAYER_PASSWORD_FILE: payerPasswordFile }),
    ...(allow && { ATS_PASSWORD_FILE: passwordFile }),
  }
  const missingPassword =
    allow && !existsSync(passwordFile)
      ? [`Write the password of the key into it first: (umask 077; cat > ${passwordFile})`]
      : []
  const previews =
    allow && asks && !canAsk
      ? [
          `This host cannot ask you, so each trade is previewed and confirmed in the conversation, within ${limitsPath(home)}, which is mandatory.`,
        ]
      : []
  return {
    json: shape({ command: runner.command, args, env }),
    notes: [`Save this as ${file}.`, ...missingPassword, ...previews],
  }
}
