import { contractRows, row } from './refusal.ts'

const remedy = 'Report it to the operator of the deployment.'
/** The contracts hold the wrong addresses or roles, so one of them rejects another, or the executor. */
const miswired = {
  sentence: (problem: string) => `The contracts of this deployment are connected incorrectly: ${problem}.`,
  remedy,
}
/** An administrator's call, or a limit of the contracts, rejects a value. */
const rejected = { sentence: (problem: string) => `The contracts rejected a value: ${problem}.`, remedy }

/** Contract errors that only an incorrectly deployed or administered set of contracts can cause. */
export const contractSetupErrors = {
  ...contractRows(miswired, {
    ACCESS_CONTROL_UNAUTHORIZED_ACCOUNT: ({ account, neededRole }) => `${account} lacks the role ${neededRole}`,
    ACCESS_CONTROL_BAD_CONFIRMATION: () => 'an account can renounce only its own roles',
    ONLY_SELF: ({ caller }) => `${caller} called a function that only the contract itself may call`,
    ONLY_TRADE_ROUTER: ({ caller }) => `the caller ${caller} is not the trade router`,
    ONLY_AGENT_REGISTRY: ({ caller }) => `the caller ${caller} is not the agent registry`,
    ONLY_ALLOCATION_MANAGER: ({ caller }) => `the caller ${caller} is not the allocation manager`,
    ONLY_ACTIVE_POOL: ({ caller }) => `the caller ${caller} is not the pool of the current swap`,
    NOT_AGENT_OWNER: ({ agentId, caller }) => `the caller ${caller} is not the owner of agent ${agentId}`,
    ALLOCATION_NOT_FOUND: ({ agentId }) => `agent ${agentId} has no allocation`,
    LEDGER_EXCEEDS_VAULT_BALANCE: ({ token, ledger, balance }) =>
      `the vault holds ${balance} of the token ${token}, its ledger says ${ledger}`,
    INSUFFICIENT_LEDGER: ({ token, ledger, amount }) =>
      `the vault's ledger has ${ledger} of the token ${token}, ${amount} are needed`,
    ERC20_INSUFFICIENT_ALLOWANCE: ({ spender, allowance, needed }) =>
      `the allowance of ${spender} is ${allowance}, ${needed} is needed`,
    ERC20_INSUFFICIENT_BALANCE: ({ sender, balance, needed }) =>
      `the balance of ${sender} is ${balance}, ${needed} is needed`,
    ERC20_INVALID_APPROVER: ({ approver }) => `${approver} cannot approve`,
    ERC20_INVALID_RECEIVER: ({ receiver }) => `${receiver} cannot receive tokens`,
    ERC20_INVALID_SENDER: ({ sender }) => `${sender} cannot send tokens`,
    ERC20_INVALID_SPENDER: ({ spender }) => `${spender} cannot be approved`,
    SAFE_ERC20_FAILED_OPERATION: ({ token }) => `a transfer of the token ${token} failed`,
  }),
  ...contractRows(rejected, {
    INVALID_SOURCE: ({ asset }) => `the source of the price of ${asset} is incomplete`,
    STREAM_TAKEN: ({ feedId, asset }) => `the stream ${feedId} is the source of ${asset} already`,
    UNKNOWN_SCHEMA: ({ feedId }) => `the reports of stream ${feedId} have an unknown schema`,
    NOT_UPDATER_SOURCE: ({ asset }) => `the price of ${asset} does not come from the updater`,
    NOT_FEED_SOURCE: ({ asset }) => `the price of ${asset} does not come from a push feed`,
  }),
  ...contractRows(miswired, {
    TRADE_IN_PROGRESS: () => 'the vault is in the middle of a trade',
    REENTRANCY_GUARD_REENTRANT_CALL: () => 'a contract called back into another one',
    INVALID_SHORT_STRING: () => "a contract's EIP-712 name or version is invalid",
    STRING_TOO_LONG: ({ str }) => `"${str}" is too long for an EIP-712 name or version`,
  }),
  ...contractRows(rejected, {
    ZERO_ADDRESS: () => 'an address is zero',
    ASSET_NOT_TRADABLE: ({ asset }) => `the vault's asset ${asset} cannot be traded`,
    FEE_TOO_HIGH: ({ bps, maxBps }) => `the fee is ${bps} basis points, the maximum is ${maxBps}`,
    INVALID_ASSET_DECIMALS: ({ decimals }) => `the vault's asset has ${decimals} decimals`,
    LIQUIDITY_PAUSED: () => 'deposits and withdrawals of the vault are paused',
    TOKEN_ALREADY_ENABLED: ({ token }) => `the token ${token} is already enabled`,
    TOKEN_NOT_ACTIVE: ({ token }) => `the token ${token} is not active`,
    TOKEN_NOT_ENABLED: ({ token }) => `the token ${token} is not enabled`,
    TOO_MANY_TOKENS: ({ max }) => `the vault can have at most ${max} tokens`,
    ALLOCATION_ALREADY_EXISTS: ({ agentId }) => `agent ${agentId} has an allocation`,
    ALLOCATION_IS_REMOVED: ({ agentId }) => `agent ${agentId}'s allocation is removed`,
    INVALID_ALLOCATION_STATUS: ({ status }) => `${status} is no allocation status to set`,
    DUPLICATE_ASSET: ({ asset }) => `the asset ${asset} appears twice`,
    GRACE_PERIOD_TOO_LONG: ({ gracePeriod, max }) =>
      `the grace period is ${gracePeriod} seconds, the maximum is ${max}`,
    LENGTH_MISMATCH: ({ assets, prices }) => `there are ${assets} assets and ${prices} prices`,
    INVALID_AGENT_STATUS: ({ status }) => `${status} is no agent status to set`,
    INVALID_TRACK: ({ track }) => `${track} is no track`,
    AGENT_NOT_PROMOTABLE: ({ agentId, status }) => `agent ${agentId} with the status ${status} cannot be promoted`,
    ILLEGAL_STATUS_MOVE: ({ agentId, from, to }) => `agent ${agentId} cannot move from the status ${from} to ${to}`,
    EXPECTED_PAUSE: () => 'the agent registry is not paused',
    ERC4626_EXCEEDED_MAX_DEPOSIT: ({ assets, max }) => `the deposit is ${assets} base units, the maximum is ${max}`,
    ERC4626_EXCEEDED_MAX_MINT: ({ shares, max }) => `the mint is ${shares} shares, the maximum is ${max}`,
    ERC4626_EXCEEDED_MAX_REDEEM: ({ shares, max }) => `the redemption is ${shares} shares, the maximum is ${max}`,
    ERC4626_EXCEEDED_MAX_WITHDRAW: ({ assets, max }) => `the withdrawal is ${assets} base units, the maximum is ${max}`,
    SAFE_CAST_OVERFLOWED_INT_DOWNCAST: ({ bits, value }) => `${value} does not fit into ${bits} bits`,
    SAFE_CAST_OVERFLOWED_UINT_DOWNCAST: ({ bits, value }) => `${value} does not fit into ${bits} bits`,
    SAFE_CAST_OVERFLOWED_UINT_TO_INT: ({ value }) => `${value} does not fit into int256`,
    SAFE_CAST_OVERFLOWED_INT_TO_UINT: ({ value }) => `${value} is negative`,
    DEFAULT_ADMIN_IS_TRANSFERRED_IN_TWO_STEPS: () => 'the default admin changes in two steps only',
    NOT_PENDING_DEFAULT_ADMIN: ({ caller, pending }) => `${caller} is not the pending default admin ${pending}`,
  }),
  INVALID_LIQUIDITY_POLICY: row({
    sentence: () => rejected.sentence('the liquidity policy of a vault is out of range'),
    remedy,
  }),
  ...contractRows(rejected, {
    INVALID_REQUEST_QUEUE: ({ queue }) => `${queue} is not a request queue of the vault`,
    ORACLE_ROUNDS_BEHIND: ({ token, held, offered }) =>
      `the new oracle is at round ${offered} of the token ${token}, the old one at ${held}`,
    SHARE_PRICE_JUMPED: ({ anchor, sharePrice, maxMoveBps }) =>
      `the share price moved from ${anchor} to ${sharePrice}, by more than ${maxMoveBps} basis points`,
    SHARES_LOCKED: ({ owner, available, shares }) =>
      `${owner} can move ${available} of ${shares} shares before the holding time ends`,
    INVALID_DEVIATION_BOUND: ({ asset, maxDeviationBps, deviationWindow }) =>
      `the deviation bound of ${asset} cannot be ${maxDeviationBps} basis points in ${deviationWindow} seconds`,
  }),
  LIMIT_OUT_OF_RANGE: row<{ field: bigint; value: bigint; max: bigint }>({
    sentence: ({ field, value, max }) =>
      rejected.sentence(`field ${field} of the limits is ${value}, beyond its bound of ${max}`),
    remedy,
  }),
  ...contractRows(rejected, {
    QUOTED: ({ amountIn, amountOut }) => `a quote of ${amountIn} for ${amountOut} was not caught`,
  }),
}
