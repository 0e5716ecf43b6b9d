import type { ComponentChildren } from 'preact'
import { connection, lastReorg, outage } from '../data/live.ts'
import { useStore } from '../data/store.ts'
import { chooseTheme, type Theme, theme } from '../theme.ts'
import { useDeployment } from './deployment.tsx'
import { SearchDialog } from './search.tsx'
import { Time, useNow } from './times.tsx'

const LINKS = [
  ['/app/vaults', 'Vaults'],
  ['/app/leaderboard', 'Leaderboard'],
  ['/app/trades', 'Trades'],
  ['/app/owner', 'Owner'],
  ['/app/depositor', 'Depositor'],
  ['/app/status', 'Status'],
] as const

/** What every page shares: navigation, the state of the connection, and the footer. */
export function Shell({ path, children }: { path: string; children: ComponentChildren }) {
  return (
    <>
      <a class="skip" href="#content">
        Skip to the content
      </a>
      <header class="top">
        <div class="bar">
          <a class="brand" href="/" aria-label="Agent Trading Service, start page">
            <svg width="22" height="22" viewBox="0 0 32 32" aria-hidden="true">
              <rect width="32" height="32" rx="7" />
              <path d="M7 22h5v-6h5v-5h8" />
              <circle cx="25" cy="11" r="2.6" />
            </svg>
            <span>Agent Trading</span>
          </a>
          <nav aria-label="Pages">
            {LINKS.map(([href, label]) => (
              <a key={href} href={href} aria-current={isCurrent(href, path) ? 'page' : undefined}>
                {label}
              </a>
            ))}
          </nav>
          <ConnectionState />
          <SearchDialog />
          <ThemeChoice />
        </div>
      </header>
      <StaleNotice />
      <ReorgNotice />
      <main id="content" tabIndex={-1}>
        {children}
      </main>
      <Footer />
    </>
  )
}

const isCurrent = (href: string, path: string) =>
  path === href || path.startsWith(`${href}/`) || (href === '/app/vaults' && path === '/app')

const CONNECTION_TEXT = { off: 'Not live', connecting: 'Connecting', live: 'Live', reconnecting: 'Reconnecting' }

function ConnectionState() {
  const stream = useStore(connection)
  const state = useStore(outage)?.of === 'service' && stream.state === 'live' ? 'reconnecting' : stream.state
  return (
    <span class={`connection ${state}`} role="status" title="The stream of events from the service">
      <span class="dot" aria-hidden="true" />
      {CONNECTION_TEXT[state]}
    </span>
  )
}

const NEXT_THEME: Record<Theme, Theme> = { system: 'dark', dark: 'light', light: 'system' }
const THEME_TEXT: Record<Theme, string> = { system: 'Auto', dark: 'Dark', light: 'Light' }

function ThemeChoice() {
  const chosen = useStore(theme)
  return (
    <button
      type="button"
      class="theme"
      onClick={() => chooseTheme(NEXT_THEME[chosen])}
      aria-label={`Theme: ${THEME_TEXT[chosen]}. Switch to ${THEME_TEXT[NEXT_THEME[chosen]]}.`}
    >
      <svg width="14" height="14" viewBox="0 0 16 16" aria-hidden="true">
        <circle cx="8" cy="8" r="6.5" />
        <path d="M8 1.5a6.5 6.5 0 0 1 0 13z" />
      </svg>
      {THEME_TEXT[chosen]}
    </button>
  )
}

const STALE_AFTER_MS = 5_000

const OUTAGE_TEXT = {
  service: 'Stale: no connection to the service',
  limit: 'The service limits how often this address may read.',
  chain: 'The service cannot read the chain.',
  index: 'The service cannot read its index of past trades.',
  lag: 'The index of past trades is behind the chain.',
}

/** Says what the page does not reach, and of when its figures are. A stream may be gone for some seconds first. */
function StaleNotice() {
  const { state, since } = useStore(connection)
  const { of, readAt } = useStore(outage) ?? {}
  const isStreamLost = useNow(1_000) - since >= STALE_AFTER_MS && state === 'reconnecting'
  if (of === undefined && !isStreamLost) return null
  const isOfService = of === undefined || of === 'service'
  return (
    <div class="notice warn" role="alert">
      <p>
        {OUTAGE_TEXT[of ?? 'service']}
        {isOfService && state === 'reconnecting' && (
          <>
            {' '}
            since <Time value={Math.floor(since / 1000)} withSeconds />
          </>
        )}
        {isOfService && '.'}{' '}
        {readAt === undefined ? (
          'Figures may be out of date'
        ) : (
          <>
            Figures are of <Time value={Math.floor(readAt / 1000)} withSeconds /> or later
          </>
        )}
        ; the page tries again by itself.
      </p>
    </div>
  )
}

function ReorgNotice() {
  const reorg = useStore(lastReorg)
  if (reorg === undefined) return null
  return (
    <div class="notice" role="status">
      <p>
        The chain dropped its blocks after {Number(reorg.commonAncestor).toLocaleString('en')};{' '}
        {reorg.withdrawn === 1 ? '1 event was' : `${reorg.withdrawn} events were`} withdrawn. The page shows the new
        blocks.
      </p>
      <button type="button" class="link" onClick={() => lastReorg.set(undefined)}>
        Dismiss
      </button>
    </div>
  )
}

function Footer() {
  const { chainId, docs } = useDeployment()
  return (
    <footer class="bottom">
      <div class="bar">
        <p>
          {chainId !== undefined && <>Chain {chainId} · </>}
          {docs && (
            <>
              <a href="/docs">API reference</a> ·{' '}
            </>
          )}
          <a href="/llms.txt">llms.txt</a> · <a href="/health/ready">readiness as JSON</a> · times of{' '}
          {Intl.DateTimeFormat().resolvedOptions().timeZone}
        </p>
        <p>
          Typefaces:{' '}
          <a href="https://rsms.me/inter/" target="_blank" rel="noreferrer noopener">
            Inter
          </a>
          {' and '}
          <a href="https://www.jetbrains.com/lp/mono/" target="_blank" rel="noreferrer noopener">
            JetBrains Mono
          </a>
          , SIL Open Font License 1.1
        </p>
      </div>
    </footer>
  )
}
