import { AgentTradingError, type Client, createClient, type WebhookInfo } from '@agent-trading-service/client'
import { useRef, useState } from 'preact/hooks'
import { useStore } from '../../data/store.ts'
import { Copy } from '../../parts/copy.tsx'
import { type Column, DataTable } from '../../parts/data-table.tsx'
import { Panel } from '../../parts/panel.tsx'
import { Empty } from '../../parts/states.tsx'
import { Badge } from '../../parts/text.tsx'
import { Time } from '../../parts/times.tsx'
import { type Connected, isSameAddress, Stopped, untilStopped, walletProblem } from '../../wallet/provider.ts'
import { connected } from '../../wallet/wallets.ts'

type Signer = NonNullable<Parameters<typeof createClient>[0]['account']>
type Api = ReturnType<Client['owner']>['webhooks']
type Problem = { message: string; remedy?: string | undefined }
type WebhooksProps = { agentId: string; parties: readonly string[] }

const EVENT_TYPES = [
  'trade',
  'exit',
  'ladder',
  'mandate',
  'intent',
  'risk',
  'price-stale',
  'price-fresh',
  'corporateAction',
] as const

/** Signs with a wallet, which needs the type of the domain as well. Throws Stopped once the signal aborts. */
const signerOf = ({ wallet, address }: Connected, signal: AbortSignal): Signer => ({
  address,
  async signTypedData({ types, ...typedData }) {
    const TYPES: Record<string, string> = { chainId: 'uint256', verifyingContract: 'address' }
    const EIP712Domain = Object.keys(typedData.domain).map(name => ({ name, type: TYPES[name] ?? 'string' }))
    const params = [address, JSON.stringify({ ...typedData, types: { EIP712Domain, ...types } })]
    const answer = wallet.provider.request({ method: 'eth_signTypedData_v4', params })
    return (await untilStopped(answer, signal)) as `0x${string}`
  },
})

/**
 * The webhooks of an agent. Its owner or signer signs what lists, creates and changes them; the messages move nothing.
 */
export function Webhooks({ agentId, parties }: WebhooksProps) {
  const wallet = useStore(connected)
  const [list, setList] = useState<readonly WebhookInfo[]>()
  const [secret, setSecret] = useState<string>()
  const [problem, setProblem] = useState<Problem>()
  const stop = useRef<AbortController>(undefined)
  const [isBusy, setBusy] = useState(false)

  async function run(action: (webhooks: Api) => Promise<void>) {
    if (wallet === undefined) return
    const started = new AbortController()
    stop.current = started
    setProblem(undefined)
    setBusy(true)
    const client = createClient({ baseUrl: window.location.origin, account: signerOf(wallet, started.signal) })
    await action(client.owner(agentId).webhooks).catch(error =>
      setProblem(error instanceof AgentTradingError ? error : { message: walletProblem(error) }),
    )
    setBusy(false)
  }
  const put = (changed: WebhookInfo) =>
    setList((known = []) => [...known.filter(({ webhookId }) => webhookId !== changed.webhookId), changed])
  const create = (url: string, eventTypes: (typeof EVENT_TYPES)[number][]) =>
    run(async webhooks => {
      const created = await webhooks.create({ url, eventTypes })
      setSecret(created.secret)
      setList(await webhooks.list().catch(() => [...(list ?? []), created.webhook]))
    })
  const change = (webhookId: string, action: 'test' | 'enable' | 'delete' | 'rotateSecret') =>
    run(async webhooks => {
      if (action === 'rotateSecret') {
        const rotated = await webhooks.rotateSecret(webhookId)
        setSecret(rotated.secret)
        put(rotated.webhook)
      } else put(await webhooks[action](webhookId))
    })

  const obstacle =
    wallet === undefined
      ? 'Connect a wallet to see and change them.'
      : parties.some(party => isSameAddress(party, wallet.address))
        ? undefined
        : 'Only the owner and the signer of the agent can see and change them.'
  return (
    <Panel title="Webhooks">
      <p class="fine below">
        The service posts the agent's events to a URL, at least once and in order. Each message that the wallet signs
        names what it does; it moves nothing.
      </p>
      {obstacle ? (
        <p class="fine">{obstacle}</p>
      ) : (
        <div class="stack">
          {secret !== undefined && (
            <div class="receipt" role="status">
              <strong>The secret is shown this once.</strong> It verifies the deliveries:{' '}
              <span class="hex whole">{secret}</span> <Copy text={secret} what="the secret" />
            </div>
          )}
          {list === undefined ? (
            <button
              type="button"
              disabled={isBusy}
              onClick={() => run(async webhooks => setList(await webhooks.list()))}
            >
              Sign to list them
            </button>
          ) : (
            <WebhookTable
              webhooks={list.filter(({ state }) => state !== 'deleted')}
              isBusy={isBusy}
              onChange={change}
            />
          )}
          <CreateForm isBusy={isBusy} onCreate={create} />
          {isBusy && (
            <p role="status">
              Open your wallet and sign.{' '}
              <button type="button" onClick={() => stop.current?.abort(new Stopped())}>
                Cancel
              </button>
            </p>
          )}
          {problem && (
            <div class="failure" role="alert">
              <p>{problem.message}</p>
              {problem.remedy && <p>{problem.remedy}</p>}
            </div>
          )}
        </div>
      )}
    </Panel>
  )
}

type FormProps = { isBusy: boolean; onCreate: (url: string, eventTypes: (typeof EVENT_TYPES)[number][]) => void }

function CreateForm({ isBusy, onCreate }: FormProps) {
  const [url, setUrl] = useState('')
  const [types, setTypes] = useState<(typeof EVENT_TYPES)[number][]>([])
  return (
    <form
      class="deposit"
      onSubmit={event => {
        event.preventDefault()
        onCreate(url.trim(), types)
      }}
    >
      <label class="field">
        <span>URL of a new webhook, with https</span>
        <input
          type="url"
          required
          autocomplete="off"
          placeholder="https://agents.example/events"
          value={url}
          onInput={event => setUrl(event.currentTarget.value)}
        />
      </label>
      <fieldset class="tokens">
        <legend class="fine">Events; without a choice, all of them</legend>
        {EVENT_TYPES.map(type => (
          <label key={type}>
            <input
              type="checkbox"
              checked={types.includes(type)}
              onChange={event =>
                setTypes(event.currentTarget.checked ? [...types, type] : types.filter(each => each !== type))
              }
            />{' '}
            {type}
          </label>
        ))}
      </fieldset>
      <button type="submit" disabled={isBusy || url === ''}>
        Create
      </button>
    </form>
  )
}

type TableProps = {
  webhooks: readonly WebhookInfo[]
  isBusy: boolean
  onChange: (webhookId: string, action: 'test' | 'enable' | 'delete' | 'rotateSecret') => void
}

function WebhookTable({ webhooks, isBusy, onChange }: TableProps) {
  if (webhooks.length === 0) return <Empty title="No webhook yet." />
  const actions: [action: Parameters<TableProps['onChange']>[1], label: string][] = [
    ['test', 'Test'],
    ['rotateSecret', 'New secret'],
    ['enable', 'Enable'],
    ['delete', 'Delete'],
  ]
  const columns: Column<WebhookInfo>[] = [
    {
      head: 'URL',
      part: 'name',
      wraps: true,
      cell: ({ url, eventTypes }) => (
        <>
          <span class="hex whole">{url}</span>
          <span class="sub">{eventTypes.length === 0 ? 'all events' : eventTypes.join(', ')}</span>
        </>
      ),
    },
    {
      head: 'State',
      wraps: true,
      cell: ({ state, disabledReason, failure, lastDeliveredAt, lastTest }) => (
        <>
          <Badge tone={state === 'disabled' ? 'bad' : failure ? 'warn' : 'good'}>
            {state === 'disabled' ? 'disabled' : failure ? 'failing' : 'active'}
          </Badge>
          {(disabledReason ?? failure?.problem) && <span class="sub">{disabledReason ?? failure?.problem}</span>}
          {lastDeliveredAt && (
            <span class="sub">
              delivered <Time value={lastDeliveredAt} withSeconds />
            </span>
          )}
          {lastTest && <span class="sub">test: {lastTest.problem ?? `status ${lastTest.status}`}</span>}
        </>
      ),
    },
    {
      head: 'Change',
      part: 'wide',
      wraps: true,
      cell: ({ webhookId, state, url }) => (
        <span class="buttons">
          {actions
            .filter(([action]) => action !== 'enable' || state === 'disabled')
            .map(([action, label]) => (
              <button
                key={action}
                type="button"
                class="small"
                disabled={isBusy}
                onClick={() => onChange(webhookId, action)}
              >
                {label}
                <span class="hidden"> for {url}</span>
              </button>
            ))}
        </span>
      ),
    },
  ]
  return <DataTable label="Webhooks" columns={columns} rows={[...webhooks]} keyOf={({ webhookId }) => webhookId} />
}
