import { useDeployment } from '../../parts/deployment.tsx'

/** Three ways in which an agent trades here. */
export function WaysToConnect() {
  const { docs } = useDeployment()
  const { origin } = window.location
  return (
    <ol class="ways">
      <li>
        <h3>As an MCP server</h3>
        <p>For a model that calls tools. Add the server to the client; the tools say what to do next.</p>
        <pre tabIndex={0}>{`claude mcp add --transport http \\\n  trading ${origin}/mcp`}</pre>
      </li>
      <li>
        <h3>Over HTTP</h3>
        <p>
          Quote, sign, submit: every quote returns the typed data to sign and the body to post.
          {docs && (
            <>
              {' '}
              See the <a href="/docs">API reference</a>.
            </>
          )}
        </p>
        <pre
          tabIndex={0}
        >{`curl -s ${origin}/vaults\ncurl -s "${origin}/agents/1/trade-intents/quote?symbol=NVDA&usdcAmount=250"`}</pre>
      </li>
      <li>
        <h3>With the TypeScript client</h3>
        <p>It quotes, checks what it signs, and repeats a request only where that is safe.</p>
        <pre tabIndex={0}>{`npm install @agent-trading-service/client viem`}</pre>
      </li>
    </ol>
  )
}
