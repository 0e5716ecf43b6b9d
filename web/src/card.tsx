import { render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Percent, Price, Usdc } from './parts/figures.tsx'
import { Guarded } from './parts/guarded.tsx'
import { Facts, Figures } from './parts/panel.tsx'
import { Badge, CapitalMode, Untrusted } from './parts/text.tsx'

// The card of a tool's result in a host of MCP Apps (SEP-1865): a trade ticket or an agent. It has no network; the host
// passes input and result on, which are parsed like those of any stranger.

type Fields = Record<string, unknown>
type Fact = [label: string, value: preact.ComponentChildren]

const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? { ...value } : {})
const textOf = (value: unknown) => (typeof value === 'string' ? value : '')
const digitsOf = (value: unknown) => (/^-?\d{1,40}$/.test(textOf(value)) ? textOf(value) : undefined)
const numberOf = (value: unknown) => (typeof value === 'number' ? value : undefined)
const fact = (label: string, value: unknown, shown: preact.ComponentChildren): Fact[] =>
  value === undefined || value === '' ? [] : [[label, shown]]

/** What a quote promises or a submission did. */
function TradeTicket({ input, result }: { input: Fields; result: Fields }) {
  const [fill, estimate] = [fieldsOf(result.fill), fieldsOf(result.estimate)]
  const isDone = textOf(result.transactionHash) !== ''
  const price = textOf(fill.priceUsd) || textOf(estimate.priceUsd)
  const spent = digitsOf(fill.usdcAmount)
  const loss = digitsOf(result.lossAtStopUsdc)
  return (
    <>
      <h1>
        <Untrusted text={textOf(input.symbol)} fallback="Trade" />{' '}
        <Badge tone={isDone ? 'good' : result.passes === false ? 'bad' : 'quiet'}>
          {isDone ? 'executed' : result.passes === false ? 'would be refused' : 'ready to sign'}
        </Badge>
      </h1>
      <Facts
        items={[
          ...(spent === undefined
            ? fact('Amount', input.usdcAmount, <Untrusted text={`${input.usdcAmount} USDC`} />)
            : fact('Amount', spent, <Usdc value={spent} />)),
          ...fact('Price', price, <Price usd={price} />),
          ...fact('Loss at the stop', loss, <Usdc value={loss} signed />),
          ...fact('Cost against the oracle', fill.costBps ?? undefined, <Percent bps={numberOf(fill.costBps)} />),
          ...fact('Position', result.positionId, `#${textOf(result.positionId)}`),
          ...fact('Agent', result.agentId ?? input.agentId, `#${textOf(result.agentId ?? input.agentId)}`),
          ...fact('Refused for', result.failedChecks, <Untrusted text={`${result.failedChecks}`} />),
        ]}
      />
    </>
  )
}

/** An agent by its figures, or by its record. */
function AgentCard({ result }: { result: Fields }) {
  const [agent, equity, derived] = [fieldsOf(result.agent), fieldsOf(result.equity), fieldsOf(result.derived)]
  const limit = numberOf(fieldsOf(result.accountRiskBounds).maxDrawdownBps)
  return (
    <>
      <h1>
        <Untrusted text={textOf(agent.name)} fallback="Agent" /> <span class="fine">#{textOf(result.agentId)}</span>{' '}
        {agent.statusName !== undefined && <Badge>{textOf(agent.statusName).toLowerCase()}</Badge>}
        {result.capitalMode !== undefined && (
          <CapitalMode mode={result.capitalMode === 'Real' ? 'Real' : 'Simulated'} />
        )}
      </h1>
      {result.equity === undefined ? (
        <Facts
          items={[
            ...fact('Track', agent.trackName, <Untrusted text={textOf(agent.trackName).toLowerCase()} />),
            ...fact('Owner', agent.owner, <span class="hex whole">{textOf(agent.owner)}</span>),
          ]}
        />
      ) : (
        <Figures
          items={[
            { label: 'Equity', value: <Usdc value={digitsOf(equity.currentUsdc)} /> },
            { label: 'Return on the track', value: <Percent bps={numberOf(derived.returnBps)} signed /> },
            {
              label: 'Drawdown',
              value: <Percent bps={numberOf(equity.currentDrawdownBps)} />,
              ...(limit ? { note: <>limit {<Percent bps={limit} />}</> } : {}),
            },
            { label: 'Unrealized', value: <Usdc value={digitsOf(derived.unrealizedPnlUsdc)} signed /> },
          ]}
        />
      )}
    </>
  )
}

const INITIALIZE = 1
const send = (message: Fields) => window.parent.postMessage({ jsonrpc: '2.0', ...message }, '*')

function applyTheme({ theme }: Fields) {
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
}

/** Follows the host, and tells it how large the card is. */
function Card() {
  const [input, setInput] = useState<Fields>({})
  const [outcome, setOutcome] = useState<Fields>()
  useEffect(() => {
    window.addEventListener('message', ({ source, data }) => {
      if (source !== window.parent) return
      const { id, method, params, result } = fieldsOf(data)
      if (method === undefined && id === INITIALIZE) {
        applyTheme(fieldsOf(fieldsOf(result).hostContext))
        send({ method: 'ui/notifications/initialized', params: {} })
      } else if (method === 'ui/notifications/host-context-changed') applyTheme(fieldsOf(params))
      else if (method === 'ui/notifications/tool-input') setInput(fieldsOf(fieldsOf(params).arguments))
      else if (method === 'ui/notifications/tool-result') setOutcome(fieldsOf(params))
      else if (id !== undefined && method !== undefined) send({ id, result: {} }) // ping, teardown
    })
    new ResizeObserver(([entry]) => {
      const { width = 0, height = 0 } = entry?.target.getBoundingClientRect() ?? {}
      send({ method: 'ui/notifications/size-changed', params: { width: Math.ceil(width), height: Math.ceil(height) } })
    }).observe(document.body)
    const appInfo = { name: 'agent-trading-service', version: '1' }
    send({
      id: INITIALIZE,
      method: 'ui/initialize',
      params: { protocolVersion: '2026-01-26', appInfo, appCapabilities: {} },
    })
  }, [])
  if (outcome === undefined) return <p class="fine">Waiting for the result…</p>
  const result = fieldsOf(outcome.structuredContent)
  if (outcome.isError === true) return <p class="note-line warn">The call was refused; the conversation says why.</p>
  return result.equity !== undefined || result.agent !== undefined ? (
    <AgentCard result={result} />
  ) : (
    <TradeTicket input={input} result={result} />
  )
}

render(
  <Guarded what="This card">
    <Card />
  </Guarded>,
  document.body,
)
