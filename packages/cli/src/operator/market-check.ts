import type { DeploymentFacts } from '@agent-trading-service/protocol/deployment-facts'
import { durationText } from '@agent-trading-service/protocol/duration'
import { CapitalMode } from '@agent-trading-service/protocol/enums'
import { type Finding, findingsOf } from '@agent-trading-service/protocol/finding'
import { listingProblems, rebasingAbi } from '@agent-trading-service/protocol/listing-rule'
import { BEACON_SLOT, decodeTokenDescription, impostorProblem } from '@agent-trading-service/protocol/token-description'
import { restrictionText } from '@agent-trading-service/protocol/token-restriction'
import { vaultSlug } from '@agent-trading-service/protocol/vault-slug'
import { type Address, erc20Abi, zeroAddress } from 'viem'
import { mandateVaultAbi } from '../../../../contracts-abi/mandate-vault.ts'
import { tradePolicyAbi } from '../../../../contracts-abi/trade-policy.ts'
import { uniswapV3SwapAdapterAbi } from '../../../../contracts-abi/uniswap-v3-swap-adapter.ts'
import { tokenRegistry } from '../../../../src/chain/contracts.ts'
import { call, optional, readTree } from '../../../../src/chain/read-tree.ts'
import { readVaultsAndTokens } from '../../../../src/chain/read-vaults-and-tokens.ts'
import { isDollar, type RestrictedToken, readRestrictedTokens } from '../../../../src/chain/token-restrictions.ts'
import type { Config } from '../../../../src/config/config.ts'
import { judgePriceSources, readPriceSources } from '../../../../src/doctor/judge-price-sources.ts'
import { type JudgedPrice, judgePrices } from '../../../../src/doctor/judge-prices.ts'
import { calendarOfProvider } from '../../../../src/price-providers/price-provider.ts'
import type { OperatedDeployment } from './connect.ts'

const oracle = findingsOf('oracle')
const vaults = findingsOf('vault')
const registry = findingsOf('registry')
const listing = findingsOf('listing')
const issuers = findingsOf('issuer')
const pools = findingsOf('pool')

/**
 * Checks what can stop trading although everything is set up: prices, vaults, the registry. `isPostedLater` says that a
 * service which is not deployed yet will post prices.
 */
export async function checkMarket(
  { chain, client }: Pick<OperatedDeployment, 'chain' | 'client'>,
  facts: DeploymentFacts,
  { isPostedLater, priceProvider }: { isPostedLater: boolean; priceProvider: Config['priceProvider'] },
): Promise<Finding[]> {
  const { registered } = await readVaultsAndTokens(chain)
  const { prices, hasNone } = judgePrices(registered, calendar => calendarOfProvider(priceProvider, calendar))
  const hasSimulatedTrack = (vault: Address) =>
    facts.tracks.some(({ config, capitalMode }) => config.vault === vault && capitalMode === CapitalMode.Simulated)
  return [
    ...prices.map(price => findPrice(price, { isPostedLater, hasNone })),
    ...judgeVaults(
      registered.vaults.map(vault => ({
        ...vault,
        vault: vaultSlug(vault),
        hasSimulatedTrack: hasSimulatedTrack(vault.address),
      })),
    ),
    judgeRegistry(facts.isRegistryPaused),
    ...judgePriceSources(await readPriceSources(chain, registered.tokens)),
    ...(await checkAverages(chain, facts, registered)),
    ...(await checkListings(chain, registered)),
    ...(await checkIssuers({ chain, client }, registered)),
    ...(await readRestrictedTokens(chain, registered)).flatMap(judgeRestriction),
  ]
}

type Registered = Awaited<ReturnType<typeof readVaultsAndTokens>>['registered']

/** In how many steps the time that a pool remembers is found. */
const AVERAGE_STEPS = 20

/** Checks that pools have the averages without which the trade policy trades nothing: a new pool has none at first. */
async function checkAverages(
  chain: OperatedDeployment['chain'],
  { contracts, tracks }: DeploymentFacts,
  { tokens }: Registered,
): Promise<Finding[]> {
  if (contracts.TradePolicy === undefined || contracts.SwapAdapter === undefined) return []
  const policy = { address: contracts.TradePolicy, abi: tradePolicyAbi }
  const adapter = { address: contracts.SwapAdapter, abi: uniswapV3SwapAdapterAbi }
  const { values } = await readTree(chain, {
    isRequired: tokens.map(({ address }) => optional(call(policy, 'isTwapRequired', [address]))),
    limits: tracks.map(({ config, trackId }) => optional(call(policy, 'limitsOf', [config.vault, BigInt(trackId)]))),
  })
  const windows = values.limits.map(limits => (limits?.maxTwapDeviationBps ? limits.twapWindow : 0))
  const window = Math.max(0, ...windows)
  const required = tokens.filter((_, index) => window > 0 && values.isRequired[index] === true)
  const steps = Array.from({ length: AVERAGE_STEPS }, (_, step) => Math.ceil((window * (step + 1)) / AVERAGE_STEPS))
  const { values: averages } = await readTree(
    chain,
    required.map(({ address }) => steps.map(seconds => optional(call(adapter, 'pricesOf', [address, seconds])))),
  )
  return required.map(({ symbol }, index) => {
    const known = steps.findLast((_, step) => (averages[index]?.[step]?.[1] ?? 0n) > 0n) ?? 0
    if (known >= window) return pools.ok(symbol, `The pool of ${symbol} has an average price.`)
    return pools.warning(
      symbol,
      `The pool of ${symbol} has no average price over ${durationText(BigInt(window))} yet, so ${symbol} cannot be traded.`,
      `wait ${durationText(BigInt(window - known))}: a pool remembers its price from its last trade on`,
    )
  })
}

/** Judges a token that a vault cannot sell; `checkListings` names the ones that are short of the ledger. */
const judgeRestriction = ({ vault, token, token: { symbol }, restriction }: RestrictedToken): Finding[] =>
  restriction.kind === 'shortOfLedger'
    ? []
    : [
        issuers.warning(
          symbol,
          `${vaultSlug(vault)} cannot ${isDollar({ vault, token }) ? 'pay' : 'sell'} ${symbol}: ${restrictionText(restriction)}.`,
          isDollar({ vault, token })
            ? 'ask the issuer, who alone can lift it; no trade, deposit or redemption of the vault works until then'
            : `ask the issuer, who alone can lift it; to stop buying: ats admin call 'TokenRegistry.setTokenActive("${symbol}", false)'`,
        ),
      ]

/** Checks that each token belongs to the issuer that the registry describes, and shows what the issuer may do. */
async function checkIssuers(
  { chain, client }: Pick<OperatedDeployment, 'chain' | 'client'>,
  { tokens }: Registered,
): Promise<Finding[]> {
  const { values } = await readTree(
    chain,
    tokens.map(({ address }) => optional(call(tokenRegistry(chain), 'descriptionOf', [address]))),
  )
  const slots = await Promise.all(
    tokens.map(({ address }) => client.getStorageAt({ address, slot: BEACON_SLOT }).catch(() => null)),
  )
  return tokens.map((token, index) => {
    const encoded = values[index]
    const slot = slots[index]
    if (encoded === undefined || slot === null)
      return issuers.unchecked(token.symbol, `The issuer of ${token.symbol} could not be read.`)
    const { kind, powers, issuer } = decodeTokenDescription(encoded)
    const problem = impostorProblem(token, issuer, slot)
    if (problem !== undefined)
      return issuers.wrong(
        token.symbol,
        `${problem}.`,
        `ats admin call 'TokenRegistry.setTokenActive("${token.symbol}", false)', and correct its description`,
      )
    const held = powers.length === 0 ? 'no power that is described' : powers.join(', ')
    return issuers.ok(
      token.symbol,
      issuer === undefined
        ? `${token.symbol} is a ${kind} token without an issuer's beacon.`
        : `${token.symbol} is a ${kind} token of the issuer ${issuer}, whose powers are: ${held}.`,
    )
  })
}

/** Checks whether the tokens may be listed, and whether each vault has what its ledger says. */
async function checkListings(chain: OperatedDeployment['chain'], registered: Registered): Promise<Finding[]> {
  const { values } = await readTree(chain, {
    tokens: registered.tokens.map(({ address }) => ({
      decimals: optional(call({ address, abi: erc20Abi }, 'decimals', [])),
      probes: [
        optional(call({ address, abi: rebasingAbi }, 'sharesOf', [zeroAddress])),
        optional(call({ address, abi: rebasingAbi }, 'scaledBalanceOf', [zeroAddress])),
        optional(call({ address, abi: rebasingAbi }, 'balancePerShare', [])),
        optional(call({ address, abi: rebasingAbi }, 'rebasingCreditsPerToken', [])),
      ],
    })),
    books: registered.vaults.flatMap(vault =>
      registered.tokens.map(({ address }) => ({
        ledger: optional(call({ address: vault.address, abi: mandateVaultAbi }, 'tokenLedger', [address])),
        balance: optional(call({ address, abi: erc20Abi }, 'balanceOf', [vault.address])),
      })),
    ),
  })
  return registered.tokens.flatMap(({ address, symbol }, index) => {
    const { decimals = 18, probes = [] } = values.tokens[index] ?? {}
    const { price } = registered.quoteIn(address)
    const isRebasing = probes.some(value => value !== undefined)
    const problems = listingProblems({ symbol, decimals, price, isRebasing })
    const short = registered.vaults.filter((_, at) => {
      const { ledger, balance } = values.books[at * registered.tokens.length + index] ?? {}
      return ledger !== undefined && balance !== undefined && balance < ledger
    })
    const found = [
      ...problems.map(problem =>
        listing.wrong(symbol, `${problem}.`, `ats admin call 'TokenRegistry.setTokenActive("${symbol}", false)'`),
      ),
      ...short.map(vault =>
        listing.wrong(
          symbol,
          `${vaultSlug(vault)} has fewer ${symbol} than its ledger says, so the last to sell cannot.`,
          `send the missing ${symbol} to ${vaultSlug(vault)}, and stop buying: ats admin call 'TokenRegistry.setTokenActive("${symbol}", false)'`,
        ),
      ),
    ]
    return found.length > 0 ? found : [listing.ok(symbol, `${symbol} is in the vaults as their ledgers say.`)]
  })
}

/**
 * Judges whether a token has a fresh price, or a closed market. `hasNone` says that no agent can trade for want of
 * prices, which is wrong unless the service is not deployed yet and will post them.
 */
function findPrice(
  { symbol, quote, maxAgeSeconds, isOverdue, isMarketClosed, nextOpen }: JudgedPrice,
  { isPostedLater, hasNone }: { isPostedLater: boolean; hasNone: boolean },
): Finding {
  const isMissing = !quote.quoted && !isMarketClosed
  const severity = (hasNone || isMissing) && !isPostedLater ? 'wrong' : 'warning'
  const fix = `ats admin price ${symbol}=<usd>, or POST /prices/refresh`
  const opening = nextOpen === undefined ? '' : ` until ${new Date(nextOpen * 1000).toISOString()}`
  const market = isMarketClosed ? `its market is closed${opening}` : 'its market has just opened'
  if (!quote.quoted)
    return isMarketClosed
      ? oracle.warning(symbol, `${symbol} has never had a price, and ${market}.`, 'wait until it opens')
      : oracle[severity](symbol, `${symbol} has never had a price.`, fix)
  const age = durationText(quote.at - quote.updatedAt)
  if (!quote.stale) return oracle.ok(symbol, `The price of ${symbol} is ${age} old.`)
  if (quote.source !== 'updater')
    return oracle.ok(symbol, `The price of ${symbol} is ${age} old: each trade brings a newer one.`)
  if (!isOverdue) return oracle.ok(symbol, `The price of ${symbol} is ${age} old: ${market}.`)
  const limit = `at most ${durationText(maxAgeSeconds)} is accepted`
  return oracle[severity](symbol, `The price of ${symbol} is stale: it is ${age} old; ${limit}.`, fix)
}

/** What a vault holds (base units of USDC), and whether it lets agents trade. */
type VaultFact = {
  vault: string
  idleAssets: bigint
  totalAssets: bigint
  tradingPaused: boolean
  hasSimulatedTrack: boolean
}

const MIN_IDLE_BPS = 100n

/** Judges whether the vaults have USDC to trade with, and are open. */
const judgeVaults = (facts: readonly VaultFact[]): Finding[] =>
  facts.flatMap(({ vault, idleAssets, totalAssets, tradingPaused, hasSimulatedTrack }) => {
    const found: Finding[] = []
    const fix = `ats admin deposit ${vault} <usdc>`
    if (idleAssets === 0n) {
      const sentence = hasSimulatedTrack
        ? `${vault} has no idle USDC: only agents with simulated capital can buy.`
        : `${vault} has no idle USDC, so no agent can buy.`
      found.push(hasSimulatedTrack ? vaults.warning(vault, sentence, fix) : vaults.wrong(vault, sentence, fix))
    } else if (idleAssets * 10_000n < totalAssets * MIN_IDLE_BPS)
      found.push(
        vaults.warning(vault, `${vault} has ${idleAssets} base units of idle USDC, less than 1 % of its assets.`, fix),
      )
    if (tradingPaused)
      found.push(vaults.warning(vault, `Trading in ${vault} is paused.`, `ats admin resume trading ${vault}`))
    return found.length > 0
      ? found
      : [vaults.ok(vault, `${vault} is open, with ${idleAssets} base units of idle USDC.`)]
  })

/** Judges whether new agents can register. */
const judgeRegistry = (isPaused: boolean): Finding =>
  isPaused
    ? registry.warning('AgentRegistry', 'The agent registry is paused.', 'ats admin resume registry')
    : registry.ok('AgentRegistry', 'The agent registry is open.')
