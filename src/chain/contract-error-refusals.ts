import {
  type ContractAbis,
  type ContractError,
  decodeRevert,
  type ErrorName,
} from '@agent-trading-service/protocol/decode-revert'
import type { Address, ContractErrorArgs, Hex } from 'viem'
import type { Code } from '../errors/catalogue.ts'
import type { Refusal } from '../errors/refusal.ts'
import { refuse } from '../errors/refuse.ts'

/** What the caller of a contract knows and the contract error does not say. */
export type RevertContext = {
  agentId?: bigint | undefined
  signer?: Address | undefined
  digest?: Hex | undefined
  deadline?: bigint | undefined
  /** Unix seconds. */
  chainTime?: bigint | undefined
  /** The transaction that reverted; absent if the call was only simulated. */
  transactionHash?: Hex | undefined
}

/** One row per Solidity error: a contract that gains an error fails `tsc` here. */
const refusals: {
  [name in ErrorName]: (args: ContractErrorArgs<ContractAbis, name>, context: RevertContext) => Refusal
} = {
  // Signed intents
  ExpiredDeadline: (_, { deadline, chainTime }) =>
    refuse('EXPIRED_DEADLINE', { given: deadline, serverTime: chainTime }),
  InvalidSignature: (_, { signer, digest }) =>
    refuse('INVALID_SIGNATURE', { problem: 'the contract did not accept it', signer, recovered: undefined, digest }),
  InvalidNonce: ([expected, provided]) => refuse('INVALID_NONCE', { given: provided, expected }),
  InvalidAccountNonce: ([account, currentNonce]) => refuse('INVALID_ACCOUNT_NONCE', { account, currentNonce }),
  AgentNotFound: ([agentId]) => refuse('AGENT_NOT_FOUND', { agentId }),
  AgentNotTradable: ([agentId]) => refuse('AGENT_NOT_TRADABLE', { agentId }),
  VaultMismatch: ([agentId, expected, provided]) => refuse('VAULT_MISMATCH', { agentId, expected, provided }),
  TokenNotAllowed: ([token]) => refuse('TOKEN_NOT_ALLOWED', { token }),
  PositionAlreadyOpen: ([agentId, token]) => refuse('POSITION_ALREADY_OPEN', { agentId, token }),
  InvalidExitRules: () => refuse('INVALID_EXIT_RULES', { problem: 'the contract did not accept it' }),
  ExitRulesOutOfBounds: () => refuse('EXIT_RULES_OUT_OF_BOUNDS', { problem: 'the contract did not accept it' }),
  TooManyExitRules: ([count]) => refuse('TOO_MANY_EXIT_RULES', { count }),
  PendingRuleAlreadyTriggered: ([positionId]) => refuse('PENDING_RULE_ALREADY_TRIGGERED', { positionId }),
  InvalidTradeAmount: ([usdcAmount]) => refuse('INVALID_TRADE_AMOUNT', { usdcAmount }),
  BpsOutOfRange: ([bps]) => refuse('BPS_OUT_OF_RANGE', { bps }),

  // Limits
  AllocationNotActive: ([agentId]) => refuse('ALLOCATION_NOT_ACTIVE', { agentId }),
  ExceedsAllocationCap: ([agentId, used, cap]) => refuse('EXCEEDS_ALLOCATION_CAP', { agentId, used, cap }),
  ExceedsMaxTradeSize: ([tradeSize, maxTradeSize]) => refuse('EXCEEDS_MAX_TRADE_SIZE', { tradeSize, maxTradeSize }),
  ExceedsDailyTurnover: ([agentId, turnover, max]) => refuse('EXCEEDS_DAILY_TURNOVER', { agentId, turnover, max }),
  ExceedsDailyLoss: ([agentId, lossUsdc, maxLossUsdc]) =>
    refuse('EXCEEDS_DAILY_LOSS', { agentId, lossUsdc, maxLossUsdc }),
  InsufficientIdleAssets: ([idle, required]) => refuse('INSUFFICIENT_IDLE_ASSETS', { idle, required }),
  VaultTrackNotActive: ([vault, trackId]) => refuse('VAULT_TRACK_NOT_ACTIVE', { vault, trackId }),

  // Positions
  PositionNotFound: ([positionId], { agentId }) => refuse('POSITION_NOT_FOUND', { agentId, positionId }),
  PositionNotOpen: ([positionId]) => refuse('POSITION_NOT_OPEN', { positionId }),
  PositionAgentMismatch: ([positionId, agentId]) => refuse('POSITION_AGENT_MISMATCH', { positionId, agentId }),
  InvalidReduceAmount: ([positionId]) => refuse('INVALID_REDUCE_AMOUNT', { positionId }),
  NoPendingExitRule: ([positionId]) => refuse('NO_PENDING_EXIT_RULE', { positionId }),
  TriggerNotMet: ([positionId]) => refuse('TRIGGER_NOT_MET', { positionId }),
  AgentNotSuspended: ([agentId]) => refuse('AGENT_NOT_SUSPENDED', { agentId }),

  // Prices and the venue
  TokenNotQuoted: ([asset]) => refuse('TOKEN_NOT_QUOTED', { asset }),
  StalePrice: ([asset, updatedAt, maxAge]) => refuse('STALE_PRICE', { asset, updatedAt, maxAge }),
  SequencerDown: () => refuse('SEQUENCER_DOWN'),
  SequencerGracePeriod: ([until]) => refuse('SEQUENCER_GRACE_PERIOD', { until }),
  SlippageExceeded: ([minimum, received]) => refuse('SLIPPAGE_EXCEEDED', { minimum, received }),
  PartialFill: ([amountIn, amountFilled]) => refuse('PARTIAL_FILL', { amountIn, amountFilled }),
  PoolNotConfigured: ([token]) => refuse('POOL_NOT_CONFIGURED', { token }),
  PoolNotFound: ([token, fee]) => refuse('POOL_NOT_FOUND', { token, fee: BigInt(fee) }),

  // Pauses
  RegistryPaused: () => refuse('REGISTRY_PAUSED'),
  EnforcedPause: () => refuse('ENFORCED_PAUSE'),
  TradingPaused: () => refuse('TRADING_PAUSED'),

  // Registration and identity
  InvalidName: ([length]) => refuse('INVALID_NAME', { length }),
  InvalidMetadataURI: ([length]) => refuse('INVALID_METADATA_URI', { length }),
  VaultNotRegistered: ([vault]) => refuse('VAULT_NOT_REGISTERED', { vault }),
  ERC8004IdWithoutLink: ([erc8004AgentId]) => refuse('ERC8004_ID_WITHOUT_LINK', { erc8004AgentId }),
  ERC8004IdentityNotFound: ([erc8004AgentId]) => refuse('ERC8004_IDENTITY_NOT_FOUND', { erc8004AgentId }),
  ERC8004OwnerMismatch: ([erc8004AgentId, expected, actual]) =>
    refuse('ERC8004_OWNER_MISMATCH', { erc8004AgentId, expected, actual }),
  ERC8004AlreadyLinked: ([erc8004AgentId, agentId]) => refuse('ERC8004_ALREADY_LINKED', { erc8004AgentId, agentId }),
  ERC8004IdentityNotLinked: ([erc8004AgentId]) => refuse('ERC8004_IDENTITY_NOT_LINKED', { erc8004AgentId }),
  AllocationNotFound: ([agentId]) => refuse('ALLOCATION_NOT_FOUND', { agentId }),

  // Prices that the updater posts
  InvalidPrice: ([asset, price]) => refuse('INVALID_PRICE', { asset, price }),
  DeviationTooLarge: ([asset, held, given, maxDeviationBps]) =>
    refuse('DEVIATION_TOO_LARGE', { asset, held, given, maxDeviationBps }),

  // Trade policy, capital modes and promotion
  SlippageAboveLimit: ([slippageBps, maxSlippageBps]) =>
    refuse('SLIPPAGE_ABOVE_LIMIT', { slippageBps, maxSlippageBps }),
  TradeTooSmall: ([usdcAmount, minUsdcAmount]) => refuse('TRADE_TOO_SMALL', { usdcAmount, minUsdcAmount }),
  DeadlineTooFar: ([deadline, latestDeadline]) => refuse('DEADLINE_TOO_FAR', { deadline, latestDeadline }),
  SpotPriceDeviation: ([token, spotPrice, oraclePrice, maxDeviationBps]) =>
    refuse('SPOT_PRICE_DEVIATION', { token, spotPrice, oraclePrice, maxDeviationBps }),
  TwapDeviation: ([token, twapPrice, oraclePrice, maxDeviationBps]) =>
    refuse('TWAP_DEVIATION', { token, twapPrice, oraclePrice, maxDeviationBps }),
  TwapUnavailable: ([token]) => refuse('TWAP_UNAVAILABLE', { token }),
  ExceedsMaxDrawdown: ([agentId, drawdownBps, maxDrawdownBps]) =>
    refuse('EXCEEDS_MAX_DRAWDOWN', { agentId, drawdownBps, maxDrawdownBps }),
  CapitalModeMismatch: ([positionId, capitalMode]) =>
    refuse('CAPITAL_MODE_MISMATCH', { positionId, capitalMode: BigInt(capitalMode) }),
  ExitInProgress: ([positionId]) => refuse('EXIT_IN_PROGRESS', { positionId }),
  ExitFloorNotMet: ([positionId, slippageBps, dueSince]) =>
    refuse('EXIT_FLOOR_NOT_MET', { positionId, slippageBps, dueSince }),
  CapsExceedAssets: ([vault, caps, assets]) => refuse('CAPS_EXCEED_ASSETS', { vault, caps, assets }),
  NotOwnerOrSigner: ([agentId, caller]) => refuse('NOT_OWNER_OR_SIGNER', { agentId, caller }),
  PromotionCriteriaNotSet: () => refuse('PROMOTION_CRITERIA_NOT_SET'),
  TooFewTrades: ([agentId, trades, minTrades]) => refuse('TOO_FEW_TRADES', { agentId, trades, minTrades }),
  EvaluationPeriodNotOver: ([agentId, endsAt]) => refuse('EVALUATION_PERIOD_NOT_OVER', { agentId, endsAt }),
  ScoreTooLow: ([agentId, score, minScore]) => refuse('SCORE_TOO_LOW', { agentId, score, minScore }),
  DailyLossLimitBreached: ([agentId, lossUsdc, maxLossUsdc]) =>
    refuse('DAILY_LOSS_LIMIT_BREACHED', { agentId, lossUsdc, maxLossUsdc }),
  DrawdownLimitBreached: ([agentId, drawdownBps, maxDrawdownBps]) =>
    refuse('DRAWDOWN_LIMIT_BREACHED', { agentId, drawdownBps, maxDrawdownBps }),
  OpenPositionsOfOtherMode: ([agentId, count]) => refuse('OPEN_POSITIONS_OF_OTHER_MODE', { agentId, count }),

  // Owners and mandates
  MandateStopsBuying: ([agentId, mode, validUntil]) =>
    refuse('MANDATE_STOPS_BUYING', { agentId, mode: BigInt(mode), validUntil }),
  MandateForbidsLooserLadder: ([positionId]) => refuse('MANDATE_FORBIDS_LOOSER_LADDER', { positionId }),
  TokenOutsideMandate: ([agentId, token]) => refuse('TOKEN_OUTSIDE_MANDATE', { agentId, token }),
  ExceedsMandateTrade: ([agentId, tradeSize, max]) => refuse('EXCEEDS_MANDATE_TRADE', { agentId, tradeSize, max }),
  ExceedsMandateTurnover: ([agentId, turnover, max]) => refuse('EXCEEDS_MANDATE_TURNOVER', { agentId, turnover, max }),
  ExceedsMandateExposure: ([agentId, exposure, max]) => refuse('EXCEEDS_MANDATE_EXPOSURE', { agentId, exposure, max }),
  MandateNotFound: ([agentId]) => refuse('MANDATE_NOT_FOUND', { agentId }),
  MandateOutOfRange: ([field, value, max]) => refuse('MANDATE_OUT_OF_RANGE', { field, value, max }),
  NoAgents: () => refuse('NO_AGENTS'),
  NoOwnershipOffer: ([agentId]) => refuse('NO_OWNERSHIP_OFFER', { agentId }),
  InvalidCancellation: ([agentId, nextNonce, untilNonce]) =>
    refuse('INVALID_CANCELLATION', { agentId, nextNonce, untilNonce }),
  OwnerControlsNotSet: () => refuse('OWNER_CONTROLS_NOT_SET'),
  OnlyOwnerControls: ([caller]) => refuse('ONLY_OWNER_CONTROLS', { caller }),
  OwnerIsSigner: ([owner]) => refuse('OWNER_IS_SIGNER', { owner }),

  // Contracts that are connected or administered incorrectly
  OnlyAllocationManager: ([caller]) => refuse('ONLY_ALLOCATION_MANAGER', { caller }),
  DefaultAdminIsTransferredInTwoSteps: () => refuse('DEFAULT_ADMIN_IS_TRANSFERRED_IN_TWO_STEPS'),
  NotPendingDefaultAdmin: ([caller, pending]) => refuse('NOT_PENDING_DEFAULT_ADMIN', { caller, pending }),
  InvalidLiquidityPolicy: () => refuse('INVALID_LIQUIDITY_POLICY'),
  OracleRoundsBehind: ([token, held, offered]) => refuse('ORACLE_ROUNDS_BEHIND', { token, held, offered }),
  SharePriceJumped: ([anchor, sharePrice, maxMoveBps]) =>
    refuse('SHARE_PRICE_JUMPED', { anchor, sharePrice, maxMoveBps }),
  SharesLocked: ([owner, available, shares]) => refuse('SHARES_LOCKED', { owner, available, shares }),
  TradeRouterDelayed: ([router, effectiveAt]) => refuse('TRADE_ROUTER_DELAYED', { router, effectiveAt }),
  TradeRouterNotScheduled: ([router]) => refuse('TRADE_ROUTER_NOT_SCHEDULED', { router }),
  InvalidDeviationBound: ([asset, maxDeviationBps, deviationWindow]) =>
    refuse('INVALID_DEVIATION_BOUND', { asset, maxDeviationBps, deviationWindow }),
  LimitOutOfRange: ([field, value, max]) => refuse('LIMIT_OUT_OF_RANGE', { field, value, max }),
  Quoted: ([amountIn, amountOut]) => refuse('QUOTED', { amountIn, amountOut }),
  AccessControlUnauthorizedAccount: ([account, neededRole]) =>
    refuse('ACCESS_CONTROL_UNAUTHORIZED_ACCOUNT', { account, neededRole }),
  AccessControlBadConfirmation: () => refuse('ACCESS_CONTROL_BAD_CONFIRMATION'),
  LedgerExceedsVaultBalance: ([token, ledger, balance]) =>
    refuse('LEDGER_EXCEEDS_VAULT_BALANCE', { token, ledger, balance }),
  InsufficientLedger: ([token, ledger, amount]) => refuse('INSUFFICIENT_LEDGER', { token, ledger, amount }),
  OnlySelf: ([caller]) => refuse('ONLY_SELF', { caller }),
  OnlyTradeRouter: ([caller]) => refuse('ONLY_TRADE_ROUTER', { caller }),
  OnlyAgentRegistry: ([caller]) => refuse('ONLY_AGENT_REGISTRY', { caller }),
  OnlyActivePool: ([caller]) => refuse('ONLY_ACTIVE_POOL', { caller }),
  NotAgentOwner: ([agentId, caller]) => refuse('NOT_AGENT_OWNER', { agentId, caller }),
  ZeroAddress: () => refuse('ZERO_ADDRESS'),
  AssetNotTradable: ([asset]) => refuse('ASSET_NOT_TRADABLE', { asset }),
  FeeTooHigh: ([bps, maxBps]) => refuse('FEE_TOO_HIGH', { bps, maxBps }),
  InvalidAssetDecimals: ([decimals]) => refuse('INVALID_ASSET_DECIMALS', { decimals: BigInt(decimals) }),
  LiquidityPaused: () => refuse('LIQUIDITY_PAUSED'),
  TokenAlreadyEnabled: ([token]) => refuse('TOKEN_ALREADY_ENABLED', { token }),
  TokenNotActive: ([token]) => refuse('TOKEN_NOT_ACTIVE', { token }),
  TokenNotEnabled: ([token]) => refuse('TOKEN_NOT_ENABLED', { token }),
  TooManyTokens: ([max]) => refuse('TOO_MANY_TOKENS', { max }),
  AllocationAlreadyExists: ([agentId]) => refuse('ALLOCATION_ALREADY_EXISTS', { agentId }),
  AllocationIsRemoved: ([agentId]) => refuse('ALLOCATION_IS_REMOVED', { agentId }),
  InvalidAllocationStatus: ([status]) => refuse('INVALID_ALLOCATION_STATUS', { status: BigInt(status) }),
  DuplicateAsset: ([asset]) => refuse('DUPLICATE_ASSET', { asset }),
  GracePeriodTooLong: ([gracePeriod, max]) => refuse('GRACE_PERIOD_TOO_LONG', { gracePeriod, max }),
  LengthMismatch: ([assets, prices]) => refuse('LENGTH_MISMATCH', { assets, prices }),
  InvalidAgentStatus: ([status]) => refuse('INVALID_AGENT_STATUS', { status: BigInt(status) }),
  InvalidTrack: ([track]) => refuse('INVALID_TRACK', { track: BigInt(track) }),
  AgentNotPromotable: ([agentId, status]) => refuse('AGENT_NOT_PROMOTABLE', { agentId, status: BigInt(status) }),
  IllegalStatusMove: ([agentId, from, to]) =>
    refuse('ILLEGAL_STATUS_MOVE', { agentId, from: BigInt(from), to: BigInt(to) }),
  ExpectedPause: () => refuse('EXPECTED_PAUSE'),
  ERC4626ExceededMaxDeposit: ([receiver, assets, max]) =>
    refuse('ERC4626_EXCEEDED_MAX_DEPOSIT', { receiver, assets, max }),
  ERC4626ExceededMaxMint: ([receiver, shares, max]) => refuse('ERC4626_EXCEEDED_MAX_MINT', { receiver, shares, max }),
  ERC4626ExceededMaxRedeem: ([owner, shares, max]) => refuse('ERC4626_EXCEEDED_MAX_REDEEM', { owner, shares, max }),
  ERC4626ExceededMaxWithdraw: ([owner, assets, max]) => refuse('ERC4626_EXCEEDED_MAX_WITHDRAW', { owner, assets, max }),
  ERC20InsufficientAllowance: ([spender, allowance, needed]) =>
    refuse('ERC20_INSUFFICIENT_ALLOWANCE', { spender, allowance, needed }),
  ERC20InsufficientBalance: ([sender, balance, needed]) =>
    refuse('ERC20_INSUFFICIENT_BALANCE', { sender, balance, needed }),
  ERC20InvalidApprover: ([approver]) => refuse('ERC20_INVALID_APPROVER', { approver }),
  ERC20InvalidReceiver: ([receiver]) => refuse('ERC20_INVALID_RECEIVER', { receiver }),
  ERC20InvalidSender: ([sender]) => refuse('ERC20_INVALID_SENDER', { sender }),
  ERC20InvalidSpender: ([spender]) => refuse('ERC20_INVALID_SPENDER', { spender }),
  SafeERC20FailedOperation: ([token]) => refuse('SAFE_ERC20_FAILED_OPERATION', { token }),
  TradeInProgress: () => refuse('TRADE_IN_PROGRESS'),
  ReentrancyGuardReentrantCall: () => refuse('REENTRANCY_GUARD_REENTRANT_CALL'),
  InvalidShortString: () => refuse('INVALID_SHORT_STRING'),
  StringTooLong: ([str]) => refuse('STRING_TOO_LONG', { str }),
  SafeCastOverflowedIntDowncast: ([bits, value]) =>
    refuse('SAFE_CAST_OVERFLOWED_INT_DOWNCAST', { bits: BigInt(bits), value }),
  SafeCastOverflowedUintToInt: ([value]) => refuse('SAFE_CAST_OVERFLOWED_UINT_TO_INT', { value }),
  SafeCastOverflowedIntToUint: ([value]) => refuse('SAFE_CAST_OVERFLOWED_INT_TO_UINT', { value }),
  SafeCastOverflowedUintDowncast: ([bits, value]) =>
    refuse('SAFE_CAST_OVERFLOWED_UINT_DOWNCAST', { bits: BigInt(bits), value }),
}

/** The wire code of a contract error: its name in SCREAMING_SNAKE case. */
export const codeOf = (name: ErrorName): Code =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .toUpperCase() as Code

/** Every code that a contract error maps onto. */
export const contractCodes: readonly Code[] = (Object.keys(refusals) as ErrorName[]).map(codeOf)

/** Returns the refusal of a call that a contract reverted; INTENT_REFUSED if its revert data cannot be decoded. */
export function refusalOfRevert(data: Hex | undefined, context: RevertContext = {}): Refusal {
  const error = decodeRevert(data)
  const refusal =
    error === undefined
      ? refuse('INTENT_REFUSED', { problem: 'it gave no reason that is known here' })
      : refusalOfError(error, context)
  const { transactionHash } = context
  return transactionHash === undefined ? refusal : refusal.withDetails({ transactionHash })
}

// The name decides the type of the arguments, which tsc cannot follow through the table.
const refusalOfError = ({ name, args }: ContractError, context: RevertContext): Refusal =>
  (refusals[name] as (args: ContractError['args'], context: RevertContext) => Refusal)(args, context)
