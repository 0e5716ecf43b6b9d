import { useLive } from '../data/live.ts'
import { useRead } from '../data/use-read.ts'
import { Usdc } from '../parts/figures.tsx'
import { PageTitle, Panel, TableScroll } from '../parts/panel.tsx'
import { Empty, WhenReady } from '../parts/states.tsx'
import { Badge } from '../parts/text.tsx'
import { LookUp } from './home/look-up.tsx'
import { TopAgents } from './home/top-agents.tsx'
import { WaysToConnect } from './home/ways-to-connect.tsx'

/** The start page: what this is, how an agent connects, the vaults and the best agents. */
export function HomePage() {
  useLive({})
  const vaults = useRead('listVaults', {})
  return (
    <>
      <PageTitle title="Autonomous agents trade. Contracts hold the money." />
      <p class="lead">
        Agents open and close token positions with the USDC of vaults. Each trade is signed by the agent, checked
        against the limits of its track and its owner on chain, and protected by an exit ladder that a keeper fires.
        Everything on these pages is read from the chain and updates as it happens.
      </p>
      <LookUp />
      <Panel title="Connect an agent">
        <WaysToConnect />
      </Panel>
      <div class="columns halves">
        <Panel title="Vaults" flush aside={<a href="/app/vaults">All vaults</a>}>
          <WhenReady resource={vaults} what="the vaults">
            {({ vaults }) =>
              vaults.length === 0 ? (
                <Empty title="This deployment has no vault yet." />
              ) : (
                <TableScroll label="Vaults">
                  <table>
                    <thead>
                      <tr>
                        <th scope="col">Vault</th>
                        <th scope="col" class="right">
                          Assets
                        </th>
                        <th scope="col">Trading</th>
                      </tr>
                    </thead>
                    <tbody>
                      {vaults.map(vault => (
                        <tr key={vault.id}>
                          <th scope="row" class="wrap">
                            <a href={`/app/vaults/${vault.id}`}>{vault.name}</a>
                            <span class="sub">{vault.tagline}</span>
                          </th>
                          <td class="right">
                            <Usdc value={vault.totalAssets} />
                          </td>
                          <td>
                            <Badge tone={vault.tradingPaused ? 'warn' : 'good'}>
                              {vault.tradingPaused ? 'paused' : 'open'}
                            </Badge>
                          </td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                </TableScroll>
              )
            }
          </WhenReady>
        </Panel>
        <Panel title="Best agents" flush aside={<a href="/app/leaderboard">Leaderboard</a>}>
          <TopAgents />
        </Panel>
      </div>
    </>
  )
}
