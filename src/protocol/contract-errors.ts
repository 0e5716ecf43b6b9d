import { type Abi, type ContractErrorName, decodeErrorResult, type Hex } from 'viem'
import { agentRegistryAbi } from '../../contracts-abi/agent-registry.ts'
import { allocationManagerAbi } from '../../contracts-abi/allocation-manager.ts'
import { feeManagerAbi } from '../../contracts-abi/fee-manager.ts'
import { mandateVaultAbi } from '../../contracts-abi/mandate-vault.ts'
import { positionManagerAbi } from '../../contracts-abi/position-manager.ts'
import { priceOracleAbi } from '../../contracts-abi/price-oracle.ts'
import { tradeRouterAbi } from '../../contracts-abi/trade-router.ts'
import { uniswapV3SwapAdapterAbi } from '../../contracts-abi/uniswap-v3-swap-adapter.ts'
import { type Facts, Refusal, refuse } from '../errors/catalogue.ts'

/** Every contract that a relayed call can run through. */
const abis = [
  tradeRouterAbi,
  positionManagerAbi,
  mandateVaultAbi,
  allocationManagerAbi,
  priceOracleAbi,
  uniswapV3SwapAdapterAbi,
  agentRegistryAbi,
  feeManagerAbi,
] as const
type ErrorName = ContractErrorName<(typeof abis)[number]>

type Args = readonly unknown[]
/** Status of the refusal (400 unless said), its sentence from the error's arguments, the remedy, the named facts. */
type Row = {
  status?: 400 | 404 | 409 | 503
  sentence: (args: Args) => string
  remedy?: string
  retryable?: boolean
}

const quote = 'Fetch a fresh quote and compare its checks.'
const operator = 'This is a matter of the deployment: tell its operator.'
const wiring = { sentence: () => 'The contracts are not wired as they should be.', remedy: operator } satisfies Row
const admin = { sentence: () => 'The contracts refused an administrative value.', remedy: operator } satisfies Row
const usdc = (value: unknown) => `${value} USDC base units`

const rows = {
  // Signed intents
  ExpiredDeadline: { sentence: () => 'The deadline has passed.', remedy: 'Fetch a fresh quote and sign it.' },
  InvalidSignature: {
    sentence: () => "The signature is not the agent signer's over exactly these values.",
    remedy: "Sign the quote's typedData and send the same values; exits count in order.",
  },
  InvalidNonce: {
    sentence: ([expected, provided]) => `The nonce ${provided} is not the next nonce ${expected}.`,
    remedy: 'Fetch a fresh quote and sign its nonce.',
  },
  InvalidAccountNonce: {
    sentence: ([, current]) => `The nonce is not the signer's current nonce ${current}.`,
    remedy: 'Fetch a fresh quote and sign its nonce.',
  },
  AgentNotFound: {
    status: 404,
    sentence: ([agentId]) => `There is no agent ${agentId}.`,
    remedy: 'Agent ids come from POST /agents/register and GET /agents/by-owner/{owner}.',
  },
  AgentNotTradable: {
    sentence: ([agentId]) => `Agent ${agentId} is not active, so it may not take new risk.`,
    remedy: 'Reducing and closing stay possible; the agent record shows its status.',
  },
  VaultMismatch: {
    sentence: ([, expected]) => `The agent trades in the vault ${expected} only.`,
    remedy: "Sign the quote's vault.",
  },
  TokenNotAllowed: {
    sentence: ([token]) => `The vault does not allow the token ${token}.`,
    remedy: "The quote's allowedSymbols lists what the vault allows.",
  },
  PositionAlreadyOpen: {
    sentence: ([agentId]) => `Agent ${agentId} already has an open position in this token.`,
    remedy: 'Add to it with POST /agents/{agentId}/add-intents.',
  },
  InvalidExitRules: {
    sentence: () => 'The exit ladder is not valid.',
    remedy:
      'Send 1 to 5 rules; stop-losses (negative) each deeper than the one before, take-profits (positive) each higher, the last rule with exitBps 10000.',
  },
  ExitRulesOutOfBounds: {
    sentence: () => "The exit ladder breaks the track's exit bounds.",
    remedy: "Stay within the quote's exitBounds.",
  },
  TooManyExitRules: {
    sentence: ([count]) => `The ladder would hold ${count} rules; fired and new ones together may be 5.`,
    remedy: 'Send fewer rules.',
  },
  PendingRuleAlreadyTriggered: {
    sentence: () => 'A rule of the new ladder would fire at once.',
    remedy: 'Move the trigger away from the current price, or reduce the position instead.',
  },
  InvalidTradeAmount: { sentence: () => 'The amount must be above zero.', remedy: 'Send a positive usdcAmount.' },
  BpsOutOfRange: {
    sentence: ([bps]) => `${bps} basis points are out of range.`,
    remedy: 'Basis points run to 10000; a reduce takes 1 to 10000.',
  },
  // Limits
  AllocationNotActive: {
    sentence: ([agentId]) => `The allocation of agent ${agentId} is not active.`,
    remedy: 'Reducing and closing stay possible; the operator activates allocations.',
  },
  ExceedsAllocationCap: {
    sentence: ([, used, cap]) => `The positions would cost ${usdc(used)}, above the allocation cap of ${cap}.`,
    remedy: "Stay within the quote's maxUsdcAmount, or reduce a position first.",
  },
  ExceedsMaxTradeSize: {
    sentence: ([size, max]) => `The trade of ${usdc(size)} is above the largest trade size of ${max}.`,
    remedy: "Stay within the quote's maxUsdcAmount.",
  },
  ExceedsDailyTurnover: {
    sentence: ([, turnover, max]) => `The day's turnover would be ${usdc(turnover)}, above the limit of ${max}.`,
    remedy: "Stay within the quote's maxUsdcAmount, or wait for the next UTC day.",
  },
  ExceedsDailyLoss: {
    sentence: ([, loss, max]) => `The day's realized loss of ${usdc(loss)} has reached the limit of ${max}.`,
    remedy: 'New risk is possible again on the next UTC day; reducing stays possible.',
  },
  InsufficientIdleAssets: {
    sentence: ([idle, required]) => `The vault has ${usdc(idle)} idle; ${required} are needed.`,
    remedy: "Stay within the quote's maxUsdcAmount.",
  },
  VaultTrackNotActive: {
    sentence: () => "The agent's track is not active in this vault.",
    remedy: 'GET /vaults/{id} shows the tracks; the operator activates them.',
  },
  // Positions
  PositionNotFound: {
    status: 404,
    sentence: ([positionId]) => `There is no position ${positionId}.`,
    remedy: "GET /agents/{agentId}/positions lists the agent's open positions.",
  },
  PositionNotOpen: {
    sentence: ([positionId]) => `Position ${positionId} is closed.`,
    remedy: 'Only an open position can be changed.',
  },
  PositionAgentMismatch: {
    status: 404,
    sentence: ([positionId, agentId]) => `Agent ${agentId} has no position ${positionId}.`,
    remedy: "GET /agents/{agentId}/positions lists the agent's open positions.",
  },
  InvalidReduceAmount: {
    sentence: () => 'The share of the position rounds down to no tokens at all.',
    remedy: 'Send a larger exitBps; 10000 closes.',
  },
  NoPendingExitRule: { sentence: ([positionId]) => `Position ${positionId} has no pending exit rule.`, remedy: quote },
  TriggerNotMet: { sentence: () => 'No pending exit rule is met at the current price.', remedy: quote },
  AgentNotSuspended: { sentence: () => 'Only the positions of a suspended agent can be force-closed.', remedy: quote },
  // Prices and the venue
  TokenNotQuoted: {
    sentence: () => 'The oracle has never quoted this token.',
    remedy: 'GET /prices shows what is quoted; POST /prices/refresh may quote it.',
    retryable: true,
  },
  StalePrice: {
    sentence: ([, updatedAt, maxAge]) => `The oracle price is of ${updatedAt} and may be ${maxAge} seconds old.`,
    remedy: 'Wait for a fresh price (GET /prices shows it), or POST /prices/refresh.',
    retryable: true,
  },
  SequencerDown: {
    sentence: () => "The chain's sequencer is reported down.",
    remedy: 'Try again later.',
    retryable: true,
  },
  SequencerGracePeriod: {
    sentence: ([until]) => `The chain's sequencer has just come back; prices count again from ${until}.`,
    remedy: 'Try again after that time.',
    retryable: true,
  },
  SlippageExceeded: {
    sentence: ([minimum, received]) => `The venue would give ${received}, less than the floor of ${minimum}.`,
    remedy: 'Trade a smaller amount, or sign a lower minTokenOut or a larger maxSlippageBps.',
  },
  PartialFill: {
    sentence: ([amountIn, filled]) => `The pool takes only ${filled} of ${amountIn}.`,
    remedy: 'Trade a smaller amount.',
  },
  PoolNotConfigured: { sentence: () => 'No pool is configured for this token.', remedy: operator },
  PoolNotFound: { sentence: () => 'There is no pool for this token.', remedy: operator },
  // Pauses
  RegistryPaused: {
    status: 503,
    sentence: () => 'The agent registry is paused: new risk is refused.',
    remedy: 'Reducing and closing still work; try again when the operator has unpaused it.',
    retryable: true,
  },
  EnforcedPause: {
    status: 503,
    sentence: () => 'The agent registry is paused: registrations are refused.',
    remedy: 'Try again when the operator has unpaused it.',
    retryable: true,
  },
  TradingPaused: {
    status: 503,
    sentence: () => "Trading is paused in the agent's vault.",
    remedy: 'Ladder updates still work; try again when the operator has unpaused it.',
    retryable: true,
  },
  // Registration and identity
  InvalidName: {
    sentence: ([length]) => `The name has ${length} bytes; 1 to 128 are allowed.`,
    remedy: 'Send a shorter name.',
  },
  InvalidMetadataURI: {
    sentence: ([length]) => `The metadataURI has ${length} bytes; 1 to 2048 are allowed.`,
    remedy: 'Send a shorter metadataURI.',
  },
  VaultNotRegistered: {
    sentence: ([vault]) => `${vault} is not a registered vault.`,
    remedy: 'GET /vaults lists the vaults.',
  },
  ERC8004IdWithoutLink: {
    sentence: () => 'An erc8004AgentId was sent without linkERC8004.',
    remedy: 'Send linkERC8004 true, or erc8004AgentId "0".',
  },
  ERC8004IdentityNotFound: {
    status: 404,
    sentence: ([id]) => `The ERC-8004 registry has no token ${id}.`,
    remedy: 'Register the identity first.',
  },
  ERC8004OwnerMismatch: {
    sentence: ([id, , actual]) => `The ERC-8004 token ${id} is held by ${actual}, not by the agent's owner.`,
    remedy: "Link an identity that the agent's owner holds.",
  },
  ERC8004AlreadyLinked: {
    status: 409,
    sentence: ([id, agentId]) => `The ERC-8004 token ${id} is already linked to agent ${agentId}.`,
    remedy: 'One identity serves one agent.',
  },
  ERC8004IdentityNotLinked: {
    status: 404,
    sentence: ([id]) => `No agent is linked to the ERC-8004 token ${id}.`,
    remedy: 'POST /agents/{agentId}/erc8004/link links one.',
  },
  AllocationNotFound: { sentence: ([agentId]) => `Agent ${agentId} has no allocation.`, remedy: operator },
  InvalidPrice: { sentence: () => 'A price must be above zero.', remedy: 'Check the market-data provider.' },
  DeviationTooLarge: {
    sentence: ([, held, given]) => `The price ${given} is too far from the held price ${held}.`,
    remedy: 'A larger move needs the oracle admin.',
  },
  // What only a wrongly wired or wrongly administered deployment can meet
  AccessControlUnauthorizedAccount: wiring,
  AccessControlBadConfirmation: wiring,
  LedgerExceedsVaultBalance: wiring,
  InsufficientLedger: wiring,
  OnlySelf: wiring,
  OnlyTradeRouter: wiring,
  OnlyAgentRegistry: wiring,
  OnlyActivePool: wiring,
  NotAgentOwner: wiring,
  ZeroAddress: admin,
  AssetNotTradable: admin,
  FeeTooHigh: admin,
  InvalidAssetDecimals: admin,
  LiquidityPaused: admin,
  TokenAlreadyEnabled: admin,
  TokenNotActive: admin,
  TokenNotEnabled: admin,
  TooManyTokens: admin,
  AllocationAlreadyExists: admin,
  AllocationIsRemoved: admin,
  InvalidAllocationStatus: admin,
  DuplicateAsset: admin,
  GracePeriodTooLong: admin,
  LengthMismatch: admin,
  InvalidAgentStatus: admin,
  InvalidTrack: admin,
  AgentNotPromotable: admin,
  IllegalStatusMove: admin,
  ExpectedPause: admin,
  ERC4626ExceededMaxDeposit: admin,
  ERC4626ExceededMaxMint: admin,
  ERC4626ExceededMaxRedeem: admin,
  ERC4626ExceededMaxWithdraw: admin,
  ERC20InsufficientAllowance: wiring,
  ERC20InsufficientBalance: wiring,
  ERC20InvalidApprover: wiring,
  ERC20InvalidReceiver: wiring,
  ERC20InvalidSender: wiring,
  ERC20InvalidSpender: wiring,
  SafeERC20FailedOperation: wiring,
  TradeInProgress: wiring,
  ReentrancyGuardReentrantCall: wiring,
  InvalidShortString: wiring,
  StringTooLong: wiring,
  SafeCastOverflowedIntDowncast: admin,
  SafeCastOverflowedUintToInt: admin,
  SafeCastOverflowedIntToUint: admin,
  SafeCastOverflowedUintDowncast: admin,
} satisfies Record<ErrorName, Row>

/** The wire code of a contract error: its name in SCREAMING_SNAKE case. */
export const codeOf = (name: string): string =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .toUpperCase()

/** Every code a contract can answer with, its status and remedy, for OpenAPI and `svc://errors`. */
export const contractCodes = Object.entries<Row>(rows).map(([name, { status = 400, remedy }]) => ({
  code: codeOf(name),
  status,
  ...(remedy !== undefined && { remedy }),
}))

/** The remedy of a contract error by its name. */
export const remedyOf = (name: string): string | undefined => table[name]?.remedy

const table: Record<string, Row> = rows
const errorsAbi: Abi = abis.flatMap(abi => [...abi] as Abi).filter(item => item.type === 'error')

/** Decodes revert data to the error's name and named arguments; undefined when it is none of ours. */
export function decodeRevert(data: Hex | undefined): { name: string; args: Args; facts: Facts } | undefined {
  if (data === undefined || data === '0x') return undefined
  try {
    const { errorName, args = [], abiItem } = decodeErrorResult({ abi: errorsAbi, data })
    const inputs = 'inputs' in abiItem ? abiItem.inputs : []
    const facts = Object.fromEntries(inputs.map(({ name }, index) => [name || `${index}`, `${args[index]}`]))
    return { name: errorName, args: args as Args, facts }
  } catch {
    return undefined
  }
}

/** The refusal of a call that a contract refused, from its revert data; INTENT_REFUSED when it cannot be decoded. */
export function ofRevert(data: Hex | undefined, extra: Facts = {}): Refusal {
  const decoded = decodeRevert(data)
  const row: Row | undefined = decoded && table[decoded.name]
  if (decoded === undefined || row === undefined) {
    const problem = decoded ? `it answered ${decoded.name}` : 'it gave no reason that is known here'
    return refuse('INTENT_REFUSED', { problem, ...decoded?.facts, ...extra })
  }
  const details = { ...decoded.facts, ...extra }
  return new Refusal(row.status ?? 400, {
    error: row.sentence(decoded.args),
    code: codeOf(decoded.name),
    ...(Object.keys(details).length > 0 && { details }),
    ...(row.remedy !== undefined && { remedy: row.remedy }),
    ...(row.retryable && { retryable: true }),
  })
}
