import { type ComponentChildren, createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { Schema } from '../data/client.ts'
import { useRead } from '../data/use-read.ts'

type Deployment = {
  explorer: string | undefined
  node: string | undefined
  chainId: number | undefined
  chainName: string | undefined
  docs: string | undefined
  contracts: Record<string, string>
  features: Schema['Discovery']['features'] | undefined
}

const none: Deployment = {
  explorer: undefined,
  node: undefined,
  chainId: undefined,
  chainName: undefined,
  docs: undefined,
  contracts: {},
  features: undefined,
}
const Context = createContext<Deployment>(none)

/** Returns what the service says about itself; empty until it has responded. */
export const useDeployment = (): Deployment => useContext(Context)

const HOUR_MS = 3_600_000

/** Provides the facts of the deployment to the pages. */
export function DeploymentProvider({ children }: { children: ComponentChildren }) {
  const { data } = useRead('getDiscovery', {}, { pollMs: HOUR_MS })
  const value = data && {
    explorer: data.links.explorer ?? undefined,
    node: data.links.node ?? undefined,
    chainId: data.chainId ?? undefined,
    chainName: data.chainName ?? undefined,
    docs: data.links.docs ?? undefined,
    contracts: data.contracts,
    features: data.features,
  }
  return <Context.Provider value={value ?? none}>{children}</Context.Provider>
}
