import { type ComponentChildren, createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Schema } from '../data/client.ts'
import { useRead } from '../data/use-read.ts'

const Context = createContext<Partial<Schema['Discovery']>>({})

/** Returns what the service says about itself; empty until it has responded. */
export function useDeployment() {
  const { links, chainId, chainName, contracts = {}, features } = useContext(Context)
  return {
    explorer: links?.explorer ?? undefined,
    node: links?.node ?? undefined,
    docs: links?.docs ?? undefined,
    chainId: chainId ?? undefined,
    chainName: chainName ?? undefined,
    contracts: contracts as Record<string, string>,
    features,
  }
}

/** Provides the facts of the deployment to the pages. */
export function DeploymentProvider({ children }: { children: ComponentChildren }) {
  const { data } = useRead('getDiscovery', {}, { pollMs: 120_000 })
  return <Context.Provider value={data ?? {}}>{children}</Context.Provider>
}
