const STYLE =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}' +
  'pre{padding:.8rem 1rem;overflow-x:auto;border:1px solid #8886;border-radius:.4rem}h2{margin-top:2rem;font-size:1.1rem}'

const NAME = 'agent-trading'

/** Tells whether a browser opens the endpoint: a GET for a page, not for the stream of a session. */
export function isPageRequest({ method, headers }: Request): boolean {
  const accept = headers.get('accept') ?? ''
  return method === 'GET' && /\btext\/html\b/i.test(accept) && !/\btext\/event-stream\b/i.test(accept)
}

/** Returns the page that says what the endpoint at a URL is and how to connect to it. It has no scripts. */
export async function connectPage(endpoint: string): Promise<Response> {
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(STYLE))
  const digest = btoa(String.fromCharCode(...new Uint8Array(hash)))
  return new Response(page(endpoint), {
    headers: {
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
      'Cache-Control': 'no-cache',
      Vary: 'Accept',
      'X-Content-Type-Options': 'nosniff',
      'X-Frame-Options': 'DENY',
      'Referrer-Policy': 'no-referrer',
    },
  })
}

const escaped = (text: string) => text.replace(/[&<>"]/g, character => `&#${character.codePointAt(0)};`)

const code = (text: string) => `<pre><code>${escaped(text)}</code></pre>`
const json = (value: unknown) => code(JSON.stringify(value, null, 2))

const page = (url: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Agent Trading Service: MCP server</title>
<style>${STYLE}</style>
</head>
<body>
<h1>This is an MCP server</h1>
<p>It lets an AI agent trade tokenized stocks in on-chain vaults, under the limits of a vault, a track and an owner. It holds no keys: the agent requests a quote, a wallet signs it, and the service executes it and pays the gas.</p>
<p>Connect an MCP client to this address, over Streamable HTTP:</p>
${code(url)}
<h2>Claude Code</h2>
${code(`claude mcp add --transport http ${NAME} ${url}`)}
<h2>Claude Desktop</h2>
<p>Settings, Connectors, Add custom connector: enter the address. Or add this to <code>claude_desktop_config.json</code>:</p>
${json({ mcpServers: { [NAME]: { command: 'npx', args: ['-y', 'mcp-remote', url] } } })}
<h2>Cursor</h2>
<p>Add this to <code>~/.cursor/mcp.json</code>:</p>
${json({ mcpServers: { [NAME]: { url } } })}
<h2>VS Code</h2>
<p>Add this to <code>.vscode/mcp.json</code>:</p>
${json({ servers: { [NAME]: { type: 'http', url } } })}
<h2>More</h2>
<ul>
<li><code>?toolsets=all</code> after the address adds the tools of owners: mandate, stop, transfer, signer.</li>
<li><code>?agentId=7</code> after the address makes reads and quotes about agent 7 where they name none.</li>
<li><a href="/.well-known/agent-skills/index.json">Skills</a>: onboard, trade, risk, recover.</li>
<li><a href="/docs">HTTP API</a> and <a href="/llms.txt">llms.txt</a>.</li>
</ul>
</body>
</html>
`
