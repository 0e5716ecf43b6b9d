import type { Failure } from '../failure.ts'
import { listKeys } from '../keys/key-folder.ts'
import { describeLimits } from '../limits/describe-limits.ts'
import { toFailure } from '../output/to-failure.ts'
import { createReader } from '../trading/create-reader.ts'

/** Reads retry for this long, in seconds: what this machine knows is of use without the service. */
const TIMEOUT_SECONDS = 5

export type WhoamiRequest = {
  home: string
  url: string
  agentId: string | undefined
  /** What keeps the server from signing; undefined if nothing does. */
  missing: Failure | undefined
  /** How the user decides about a signature. */
  confirmation: 'elicitation' | 'preview' | 'none'
}

/** Returns who trades here and within which limits, with what is known without the service if it does not respond. */
export async function whoami({ home, url, agentId, missing, confirmation }: WhoamiRequest) {
  const { keys } = listKeys(home)
  const service = await serviceView(url, agentId)
  const { signer, owner } = service
  const nameOf = (address: string | undefined) =>
    keys.find(key => key.address.toLowerCase() === address?.toLowerCase())?.name ?? null
  return {
    agentId: agentId ?? null,
    service: url,
    canSign: missing === undefined,
    ...(missing && { missing: { error: missing.message, code: missing.facts.code } }),
    confirmation,
    keys: keys.map(({ name, address }) => ({ name, address })),
    ...(signer && { signerKey: nameOf(signer), ownerKey: nameOf(owner) }),
    ...service,
    localLimits: attempt(() => describeLimits(home)),
  }
}

type ServiceView = { signer?: string; owner?: string; [fact: string]: unknown }

async function serviceView(url: string, agentId: string | undefined): Promise<ServiceView> {
  const reads = createReader({ url, timeout: TIMEOUT_SECONDS })
  try {
    const [{ tokens }, agent] = await Promise.all([
      reads.listTokens(),
      agentId === undefined ? undefined : agentView(reads, agentId),
    ])
    // Tokens of one market share its session, so one row per session is short.
    const market = [...new Map(tokens.map(({ market }) => [market.session, market])).values()]
    return { ...agent, market }
  } catch (error) {
    const { message, facts } = toFailure(error)
    return { serviceError: { error: message, code: facts.code } }
  }
}

async function agentView(reads: ReturnType<typeof createReader>, agentId: string) {
  const [{ agent }, { mandate }, { allocation, equity, positions }] = await Promise.all([
    reads.getAgent({ agentId }),
    reads.getMandate({ agentId }),
    reads.getRiskState({ agentId }),
  ])
  const { name, signer, owner, statusName, trackName, vault } = agent
  return { name, signer, owner, status: statusName, track: trackName, vault, mandate, allocation, equity, positions }
}

function attempt<T>(read: () => T) {
  try {
    return read()
  } catch (error) {
    const { message, facts } = toFailure(error)
    return { error: message, code: facts.code }
  }
}
