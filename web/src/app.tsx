import { showUnseen } from '@agent-trading-service/protocol/unseen-text'
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { readText, writeText } from './data/storage.ts'
import type { PageProps } from './page-props.ts'
import { AgentPage } from './pages/agent.tsx'
import { HomePage } from './pages/home.tsx'
import { LeaderboardPage } from './pages/leaderboard.tsx'
import { NotFoundPage } from './pages/not-found.tsx'
import { PositionPage } from './pages/position.tsx'
import { VaultPage } from './pages/vault.tsx'
import { VaultsPage } from './pages/vaults.tsx'
import { DeploymentProvider } from './parts/deployment.tsx'
import { Broken, Guarded } from './parts/guarded.tsx'
import { Shell } from './parts/shell.tsx'
import { Loading } from './parts/states.tsx'
import { matchPath, usePlace } from './router.tsx'

type Page = ComponentType<PageProps>

/**
 * A page whose script is loaded when it is opened. After a failure the whole page is loaded again, once, if the service
 * responds: browsers keep the failure of a script, and a newer version no longer has the scripts of an open tab.
 */
function later(load: () => Promise<Page>): Page {
  return function Later(props: PageProps) {
    const [LoadedPage, setPage] = useState<Page | null>()
    useEffect(() => {
      load().then(
        page => {
          writeText('sessionStorage', 'reloaded', undefined)
          setPage(() => page)
        },
        () => {
          const { href } = window.location
          const isSecond = readText('sessionStorage', 'reloaded') === href
          writeText('sessionStorage', 'reloaded', href)
          // Where storage is blocked, this would not end.
          if (isSecond || readText('sessionStorage', 'reloaded') === undefined) setPage(null)
          else
            fetch(href, { method: 'HEAD' }).then(
              ({ ok }) => (ok ? window.location.reload() : setPage(null)),
              () => setPage(null),
            )
        },
      )
    }, [])
    if (LoadedPage === null) return <Broken text="The script of this page could not be loaded." />
    return LoadedPage ? <LoadedPage {...props} /> : <Loading what="the page" lines={4} />
  }
}

const ComparePage = later(() => import('./pages/compare.tsx').then(module => module.ComparePage))
const IntentPage = later(() => import('./pages/intent.tsx').then(module => module.IntentPage))
const StatusPage = later(() => import('./pages/status.tsx').then(module => module.StatusPage))
const TokenPage = later(() => import('./pages/token.tsx').then(module => module.TokenPage))
const TradesPage = later(() => import('./pages/trades.tsx').then(module => module.TradesPage))
const TransactionPage = later(() => import('./pages/transaction.tsx').then(module => module.TransactionPage))
const OwnerPage = later(() => import('./pages/owner.tsx').then(module => module.OwnerPage))
const DepositorPage = later(() => import('./pages/depositor.tsx').then(module => module.DepositorPage))

const routes: [pattern: string, title: string, page: Page][] = [
  ['', 'Agent Trading Service', HomePage],
  ['/app', 'Vaults', VaultsPage],
  ['/app/vaults', 'Vaults', VaultsPage],
  ['/app/vaults/:id', 'Vault', VaultPage],
  ['/app/tokens/:symbol', 'Token', TokenPage],
  ['/app/leaderboard', 'Leaderboard', LeaderboardPage],
  ['/app/trades', 'Trades', TradesPage],
  ['/app/compare', 'Compare', ComparePage],
  ['/app/agents/:agentId', 'Agent', AgentPage],
  ['/app/agents/:agentId/positions/:positionId', 'Position', PositionPage],
  ['/app/intents/:digest', 'Intent', IntentPage],
  ['/app/transactions/:hash', 'Transaction', TransactionPage],
  ['/app/owner', "Owner's desk", OwnerPage],
  ['/app/depositor', "Depositor's desk", DepositorPage],
  ['/app/status', 'Status', StatusPage],
]

function findRoute(path: string): { title: string; page: Page; params: Record<string, string> } {
  for (const [pattern, title, page] of routes) {
    const params = matchPath(pattern, path)
    if (params) return { title, page, params }
  }
  return { title: 'Not found', page: NotFoundPage, params: {} }
}

/** Chooses the page of the path. */
export function App() {
  const { pathname, searchParams } = usePlace()
  const { title, page: PageOfPath, params } = findRoute(pathname)

  useEffect(() => {
    const subject = Object.values(params).at(-1)
    document.title =
      pathname === '/' ? title : `${subject ? `${title} ${shortened(showUnseen(subject))}` : title} · Agent Trading`
  }, [pathname])

  return (
    <DeploymentProvider>
      <Shell path={pathname}>
        <Guarded key={pathname} what="This page">
          <PageOfPath params={params} query={searchParams} />
        </Guarded>
      </Shell>
    </DeploymentProvider>
  )
}

const shortened = (text: string) => (text.length > 20 ? `${text.slice(0, 8)}…` : text)
