import type { Address, Hex } from 'viem'
import { type ErrorRow, type Facts, row } from './refusal.ts'

const REMEDY = 'Report it to the operator of the deployment.'

/** The contracts hold the wrong addresses or roles, so one of them rejects another, or the executor. */
const miswired = <F extends Facts = Record<never, never>>(problem: (facts: F) => string): ErrorRow<F> =>
  row<F>({
    status: 400,
    sentence: facts => `The contracts of this deployment are connected incorrectly: ${problem(facts)}.`,
    remedy: REMEDY,
  })

/** An administrator's call, or a limit of the contracts, rejects a value. */
const rejected = <F extends Facts = Record<never, never>>(problem: (facts: F) => string): ErrorRow<F> =>
  row<F>({
    status: 400,
    sentence: facts => `The contracts rejected a value: ${problem(facts)}.`,
    remedy: REMEDY,
  })

type Caller = { caller: Address }
type ShareLimit = { shares: bigint; max: bigint }
type AssetLimit = { assets: bigint; max: bigint }

/** Contract errors that only an incorrectly deployed or administered set of contracts can cause. */
export const contractSetupErrors = {
  ACCESS_CONTROL_UNAUTHORIZED_ACCOUNT: miswired<{ account: Address; neededRole: Hex }>(
    ({ account, neededRole }) => `${account} lacks the role ${neededRole}`,
  ),
  ACCESS_CONTROL_BAD_CONFIRMATION: miswired(() => 'an account can renounce only its own roles'),
  ONLY_SELF: miswired<Caller>(({ caller }) => `${caller} called a function that only the contract itself may call`),
  ONLY_TRADE_ROUTER: miswired<Caller>(({ caller }) => `the caller ${caller} is not the trade router`),
  ONLY_AGENT_REGISTRY: miswired<Caller>(({ caller }) => `the caller ${caller} is not the agent registry`),
  ONLY_ALLOCATION_MANAGER: miswired<Caller>(({ caller }) => `the caller ${caller} is not the allocation manager`),
  ONLY_ACTIVE_POOL: miswired<Caller>(({ caller }) => `the caller ${caller} is not the pool of the current swap`),
  NOT_AGENT_OWNER: miswired<{ agentId: bigint; caller: Address }>(
    ({ agentId, caller }) => `the caller ${caller} is not the owner of agent ${agentId}`,
  ),
  ALLOCATION_NOT_FOUND: miswired<{ agentId: bigint }>(({ agentId }) => `agent ${agentId} has no allocation`),
  LEDGER_EXCEEDS_VAULT_BALANCE: miswired<{ token: Address; ledger: bigint; balance: bigint }>(
    ({ token, ledger, balance }) => `the vault holds ${balance} of the token ${token}, its ledger says ${ledger}`,
  ),
  INSUFFICIENT_LEDGER: miswired<{ token: Address; ledger: bigint; amount: bigint }>(
    ({ token, ledger, amount }) => `the vault's ledger has ${ledger} of the token ${token}, ${amount} are needed`,
  ),
  ERC20_INSUFFICIENT_ALLOWANCE: miswired<{ spender: Address; allowance: bigint; needed: bigint }>(
    ({ spender, allowance, needed }) => `the allowance of ${spender} is ${allowance}, ${needed} is needed`,
  ),
  ERC20_INSUFFICIENT_BALANCE: miswired<{ sender: Address; balance: bigint; needed: bigint }>(
    ({ sender, balance, needed }) => `the balance of ${sender} is ${balance}, ${needed} is needed`,
  ),
  ERC20_INVALID_APPROVER: miswired<{ approver: Address }>(({ approver }) => `${approver} cannot approve`),
  ERC20_INVALID_RECEIVER: miswired<{ receiver: Address }>(({ receiver }) => `${receiver} cannot receive tokens`),
  ERC20_INVALID_SENDER: miswired<{ sender: Address }>(({ sender }) => `${sender} cannot send tokens`),
  ERC20_INVALID_SPENDER: miswired<{ spender: Address }>(({ spender }) => `${spender} cannot be approved`),
  SAFE_ERC20_FAILED_OPERATION: miswired<{ token: Address }>(({ token }) => `a transfer of the token ${token} failed`),
  INVALID_SOURCE: rejected<{ asset: Address }>(({ asset }) => `the source of the price of ${asset} is incomplete`),
  STREAM_TAKEN: rejected<{ feedId: Hex; asset: Address }>(
    ({ feedId, asset }) => `the stream ${feedId} is the source of ${asset} already`,
  ),
  UNKNOWN_SCHEMA: rejected<{ feedId: Hex }>(({ feedId }) => `the reports of stream ${feedId} have an unknown schema`),
  NOT_UPDATER_SOURCE: rejected<{ asset: Address }>(
    ({ asset }) => `the price of ${asset} does not come from the updater`,
  ),
  NOT_FEED_SOURCE: rejected<{ asset: Address }>(({ asset }) => `the price of ${asset} does not come from a push feed`),
  TRADE_IN_PROGRESS: miswired(() => 'the vault is in the middle of a trade'),
  REENTRANCY_GUARD_REENTRANT_CALL: miswired(() => 'a contract called back into another one'),
  INVALID_SHORT_STRING: miswired(() => "a contract's EIP-712 name or version is invalid"),
  STRING_TOO_LONG: miswired<{ str: string }>(({ str }) => `"${str}" is too long for an EIP-712 name or version`),

  ZERO_ADDRESS: rejected(() => 'an address is zero'),
  ASSET_NOT_TRADABLE: rejected<{ asset: Address }>(({ asset }) => `the vault's asset ${asset} cannot be traded`),
  FEE_TOO_HIGH: rejected<{ bps: bigint; maxBps: bigint }>(
    ({ bps, maxBps }) => `the fee is ${bps} basis points, the maximum is ${maxBps}`,
  ),
  INVALID_ASSET_DECIMALS: rejected<{ decimals: bigint }>(
    ({ decimals }) => `the vault's asset has ${decimals} decimals`,
  ),
  LIQUIDITY_PAUSED: rejected(() => 'deposits and withdrawals of the vault are paused'),
  TOKEN_ALREADY_ENABLED: rejected<{ token: Address }>(({ token }) => `the token ${token} is already enabled`),
  TOKEN_NOT_ACTIVE: rejected<{ token: Address }>(({ token }) => `the token ${token} is not active`),
  TOKEN_NOT_ENABLED: rejected<{ token: Address }>(({ token }) => `the token ${token} is not enabled`),
  TOO_MANY_TOKENS: rejected<{ max: bigint }>(({ max }) => `the vault can have at most ${max} tokens`),
  ALLOCATION_ALREADY_EXISTS: rejected<{ agentId: bigint }>(({ agentId }) => `agent ${agentId} has an allocation`),
  ALLOCATION_IS_REMOVED: rejected<{ agentId: bigint }>(({ agentId }) => `agent ${agentId}'s allocation is removed`),
  INVALID_ALLOCATION_STATUS: rejected<{ status: bigint }>(({ status }) => `${status} is no allocation status to set`),
  DUPLICATE_ASSET: rejected<{ asset: Address }>(({ asset }) => `the asset ${asset} appears twice`),
  GRACE_PERIOD_TOO_LONG: rejected<{ gracePeriod: bigint; max: bigint }>(
    ({ gracePeriod, max }) => `the grace period is ${gracePeriod} seconds, the maximum is ${max}`,
  ),
  LENGTH_MISMATCH: rejected<{ assets: bigint; prices: bigint }>(
    ({ assets, prices }) => `there are ${assets} assets and ${prices} prices`,
  ),
  INVALID_AGENT_STATUS: rejected<{ status: bigint }>(({ status }) => `${status} is no agent status to set`),
  INVALID_TRACK: rejected<{ track: bigint }>(({ track }) => `${track} is no track`),
  AGENT_NOT_PROMOTABLE: rejected<{ agentId: bigint; status: bigint }>(
    ({ agentId, status }) => `agent ${agentId} with the status ${status} cannot be promoted`,
  ),
  ILLEGAL_STATUS_MOVE: rejected<{ agentId: bigint; from: bigint; to: bigint }>(
    ({ agentId, from, to }) => `agent ${agentId} cannot move from the status ${from} to ${to}`,
  ),
  EXPECTED_PAUSE: rejected(() => 'the agent registry is not paused'),
  ERC4626_EXCEEDED_MAX_DEPOSIT: rejected<AssetLimit & { receiver: Address }>(
    ({ assets, max }) => `the deposit is ${assets} base units, the maximum is ${max}`,
  ),
  ERC4626_EXCEEDED_MAX_MINT: rejected<ShareLimit & { receiver: Address }>(
    ({ shares, max }) => `the mint is ${shares} shares, the maximum is ${max}`,
  ),
  ERC4626_EXCEEDED_MAX_REDEEM: rejected<ShareLimit & { owner: Address }>(
    ({ shares, max }) => `the redemption is ${shares} shares, the maximum is ${max}`,
  ),
  ERC4626_EXCEEDED_MAX_WITHDRAW: rejected<AssetLimit & { owner: Address }>(
    ({ assets, max }) => `the withdrawal is ${assets} base units, the maximum is ${max}`,
  ),
  SAFE_CAST_OVERFLOWED_INT_DOWNCAST: rejected<{ bits: bigint; value: bigint }>(
    ({ bits, value }) => `${value} does not fit into ${bits} bits`,
  ),
  SAFE_CAST_OVERFLOWED_UINT_DOWNCAST: rejected<{ bits: bigint; value: bigint }>(
    ({ bits, value }) => `${value} does not fit into ${bits} bits`,
  ),
  SAFE_CAST_OVERFLOWED_UINT_TO_INT: rejected<{ value: bigint }>(({ value }) => `${value} does not fit into int256`),
  SAFE_CAST_OVERFLOWED_INT_TO_UINT: rejected<{ value: bigint }>(({ value }) => `${value} is negative`),
  DEFAULT_ADMIN_IS_TRANSFERRED_IN_TWO_STEPS: rejected(() => 'the default admin changes in two steps only'),
  NOT_PENDING_DEFAULT_ADMIN: rejected<{ caller: Address; pending: Address }>(
    ({ caller, pending }) => `${caller} is not the pending default admin ${pending}`,
  ),
  INVALID_LIQUIDITY_POLICY: rejected(() => 'the liquidity policy of a vault is out of range'),
  INVALID_REQUEST_QUEUE: rejected<{ queue: Address }>(({ queue }) => `${queue} is not a request queue of the vault`),
  ORACLE_ROUNDS_BEHIND: rejected<{ token: Address; held: bigint; offered: bigint }>(
    ({ token, held, offered }) => `the new oracle is at round ${offered} of the token ${token}, the old one at ${held}`,
  ),
  SHARE_PRICE_JUMPED: rejected<{ anchor: bigint; sharePrice: bigint; maxMoveBps: bigint }>(
    ({ anchor, sharePrice, maxMoveBps }) =>
      `the share price moved from ${anchor} to ${sharePrice}, by more than ${maxMoveBps} basis points`,
  ),
  SHARES_LOCKED: rejected<{ owner: Address; available: bigint; shares: bigint }>(
    ({ owner, available, shares }) => `${owner} can move ${available} of ${shares} shares before the holding time ends`,
  ),
  INVALID_DEVIATION_BOUND: rejected<{ asset: Address; maxDeviationBps: bigint; deviationWindow: bigint }>(
    ({ asset, maxDeviationBps, deviationWindow }) =>
      `the deviation bound of ${asset} cannot be ${maxDeviationBps} basis points in ${deviationWindow} seconds`,
  ),
  LIMIT_OUT_OF_RANGE: rejected<{ field: bigint; value: bigint; max: bigint }>(
    ({ field, value, max }) => `field ${field} of the limits is ${value}, beyond its bound of ${max}`,
  ),
  QUOTED: rejected<{ amountIn: bigint; amountOut: bigint }>(
    ({ amountIn, amountOut }) => `a quote of ${amountIn} for ${amountOut} was not caught`,
  ),
}
