import { Code } from '../../parts/copy.tsx'
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
        <Code
          what="the command that adds the server"
          text={`claude mcp add --transport http \\\n  trading ${origin}/mcp`}
        />
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
        <Code
          what="the requests"
          text={`curl -s ${origin}/vaults\ncurl -s "${origin}/agents/1/trade-intents/quote?symbol=NVDA&usdcAmount=250"`}
        />
      </li>
      <li>
        <h3>With the TypeScript or Python client</h3>
        <p>They quote, check what they sign, and repeat a request only where that is safe.</p>
        <Code
          what="the commands that install them"
          text={`npm install @agent-trading-service/client viem\npip install agent-trading-service`}
        />
      </li>
    </ol>
  )
}
