import { Failure } from '../failure.ts'
import { createReader, type Reader } from '../trading/create-reader.ts'

// What a rehearsal takes over from a deployment, read over its HTTP API. Amounts are USDC base units as digits.

/**
 * A token and its pool. Fee and depth are null while the pool cannot be quoted, for example because the price is stale.
 */
export type VenueToken = {
  symbol: string
  name: string
  address: `0x${string}`
  decimals: number
  priceUsd: string
  /** How many shares it stands for, as a decimal; absent in days that were recorded before tokens had one. */
  multiplier?: string
  poolFee: number | null
  depthUsdc: string | null
}

type Vault = Awaited<ReturnType<Reader['listVaults']>>['vaults'][number]
type RiskState = Awaited<ReturnType<Reader['getRiskState']>>

/** A track of a vault. What the API only says of agents is null on a track without any. */
export type VenueTrack = Omit<Vault['vaultTrackConfigs'][number], 'vault' | 'trackName'> & {
  capitalMode: RiskState['capitalMode']
  tradePolicy: RiskState['tradePolicy']
  /** Budgets of execution cost, as shares of the allocation cap; 0 is no budget. */
  maxWasteBps: number | null
}
export type VenueVault = { slug: string; totalAssets: string; tokens: string[]; tracks: VenueTrack[] }

/** The tokens of a deployment with their pools, and its vaults with the policies of their tracks. */
export type Venue = { chainId: number; tokens: VenueToken[]; vaults: VenueVault[] }

/** The contracts of a deployment by name, and its public node, if it names one. */
export type Service = { chainId: number; contracts: Record<string, `0x${string}`>; node: string | null }

const SERVICE_NAME = 'agent-trading-service'
const TIMEOUT_MS = 15_000
/** The size of the purchase that a pool's depth is computed from. */
const PROBE_USDC = '1000'
const FEE_UNITS_PER_BPS = 100
const MAX_DEPTH_USDC = 10n ** 18n

/** Reads what a deployment says about itself. Throws a failure if the URL does not lead to one. */
export async function readService(url: string): Promise<Service> {
  const response = await fetch(`${url.replace(/\/+$/, '')}/`, {
    headers: { accept: 'application/json' },
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).catch(() => {
    throw new Failure('unavailable', `${url} cannot be reached.`, {
      code: 'HOST_UNREACHABLE',
      remedy: 'Check the host and your connection, and try again.',
    })
  })
  const body = (await response.json().catch(() => undefined)) as
    | { service?: unknown; chainId?: unknown; contracts?: Service['contracts']; links?: { node?: string | null } }
    | undefined
  if (body?.service !== SERVICE_NAME || typeof body.chainId !== 'number')
    throw new Failure('refused', `${url} is not a deployment of this service.`, {
      code: 'NOT_THIS_SERVICE',
      remedy: 'Pass the base URL of its API, such as https://api.example.',
    })
  return { chainId: body.chainId, contracts: body.contracts ?? {}, node: body.links?.node ?? null }
}

/** Reads the tokens, pools, vaults and tracks of a deployment. Throws as `readService` and the client do. */
export async function readVenue(url: string): Promise<Venue> {
  const { chainId } = await readService(url)
  const reader = createReader({ url, timeout: TIMEOUT_MS / 1_000 })
  const [{ vaults: all }, { tokens: listed }] = await Promise.all([reader.listVaults({}), reader.listTokens({})])
  const quoted = listed.filter(({ active, price }) => active && Number(price.priceUsd) > 0)
  const vaults: VenueVault[] = []
  for (const { slug, totalAssets, vaultTrackConfigs } of all)
    vaults.push({
      slug,
      totalAssets,
      tokens: quoted.filter(({ vaultIds }) => vaultIds.includes(slug)).map(({ symbol }) => symbol),
      tracks: await Promise.all(vaultTrackConfigs.map(config => readTrack(reader, slug, config))),
    })
  const tokens: VenueToken[] = []
  for (const { symbol, name, address, decimals, price, multiplier } of quoted) {
    const pool = await readPool(reader, { symbol, decimals })
    tokens.push({
      symbol,
      name,
      address: address as `0x${string}`,
      decimals,
      priceUsd: price.priceUsd,
      multiplier,
      ...pool,
    })
  }
  return { chainId, tokens, vaults }
}

/** Reads the policy of a track, with that of the risk state of its newest agent. */
async function readTrack(
  reader: Reader,
  slug: string,
  { vault: _, trackName: __, ...config }: Vault['vaultTrackConfigs'][number],
): Promise<VenueTrack> {
  const { agents } = await reader.listAgents({ vault: slug, track: `${config.trackId}`, limit: '1' } as never)
  const agentId = agents[0]?.agentId
  if (agentId === undefined) return { ...config, capitalMode: null, tradePolicy: null, maxWasteBps: null }
  const { capitalMode, tradePolicy, allocation, waste } = await reader.getRiskState({ agentId })
  // The bound also grows with the agent's peak, which the newest agent of a track hardly has.
  const isBounded = waste.maxUsdc !== null && allocation.cap !== '0'
  const maxWasteBps = isBounded ? Math.round((Number(waste.maxUsdc) * 10_000) / Number(allocation.cap)) : 0
  return { ...config, capitalMode, tradePolicy, maxWasteBps }
}

/** Reads fee and depth of a pool: the USDC on its side of a pool over all prices that costs as much. */
async function readPool(
  reader: Reader,
  { symbol, decimals }: { symbol: string; decimals: number },
): Promise<Pick<VenueToken, 'poolFee' | 'depthUsdc'>> {
  const depth = await reader.getDepth({ symbol, usdcAmount: PROBE_USDC }).catch(() => undefined)
  if (depth === undefined) return { poolFee: null, depthUsdc: null }
  const poolFee = depth.poolFeeBps * FEE_UNITS_PER_BPS
  const paid = (BigInt(depth.purchase.usdcAmount) * BigInt(1_000_000 - poolFee)) / 1_000_000n
  const worth = worthAt(depth.midPriceUsd, { tokenAmount: BigInt(depth.purchase.tokenAmount), decimals })
  const depthUsdc = paid > worth ? (worth * paid) / (paid - worth) : MAX_DEPTH_USDC
  return { poolFee, depthUsdc: `${depthUsdc < MAX_DEPTH_USDC ? depthUsdc : MAX_DEPTH_USDC}` }
}

/** Returns what tokens are worth at a price in US dollars, in USDC base units. */
function worthAt(priceUsd: string, { tokenAmount, decimals }: { tokenAmount: bigint; decimals: number }): bigint {
  const [whole = '0', fraction = ''] = priceUsd.split('.')
  const price = BigInt(whole + fraction.padEnd(8, '0'))
  return (tokenAmount * price) / 10n ** BigInt(decimals + 2)
}
