// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IPositionManager} from "./IPositionManager.sol";

/// @title Executes what agents signed, what their exit rules ask for, and what the operator must close
interface ITradeRouter {
    struct PositionIntent {
        uint256 agentId;
        address vault;
        address token;
        uint256 usdcAmount;
        uint256 minTokenOut;
        uint16 maxSlippageBps;
        IPositionManager.ExitRule[] exits;
        uint256 deadline;
        uint256 nonce;
    }

    struct AddToPositionIntent {
        uint256 agentId;
        uint256 positionId;
        uint256 usdcAmount;
        uint256 minTokenOut;
        uint16 maxSlippageBps;
        uint256 deadline;
        uint256 nonce;
    }

    struct ReducePositionIntent {
        uint256 agentId;
        uint256 positionId;
        uint16 exitBps;
        uint256 deadline;
        uint256 nonce;
    }

    struct UpdateExitLadderIntent {
        uint256 agentId;
        uint256 positionId;
        IPositionManager.ExitRule[] exits;
        uint256 deadline;
        uint256 nonce;
    }

    /// @notice What `executeExits` did with one position
    enum ExitStatus {
        Executed,
        NotDue,
        StalePrice,
        Paused,
        NotOpen,
        Failed
    }

    event PositionOpenedFromIntent(
        uint256 indexed positionId, uint256 indexed agentId, address indexed vault, address token, uint256 usdcIn
    );
    event PositionIncreasedFromIntent(
        uint256 indexed positionId, uint256 indexed agentId, uint256 usdcIn, uint256 tokensAdded
    );
    event PositionReducedFromIntent(
        uint256 indexed positionId, uint256 indexed agentId, uint16 exitBps, uint256 usdcOut
    );
    event PositionExitLadderUpdatedFromIntent(uint256 indexed positionId, uint256 indexed agentId, uint8 nextRuleIndex);
    /// @param ruleIndex Where the fired rule stands now in the ladder
    /// @param usdcOut What the vault keeps: the proceeds less the bounty
    event ExitExecuted(
        uint256 indexed positionId,
        uint256 indexed agentId,
        uint8 ruleIndex,
        address indexed keeper,
        uint256 usdcOut,
        uint256 keeperBounty
    );
    event PositionForceClosed(
        uint256 indexed positionId, uint256 indexed agentId, address indexed operator, uint256 usdcOut
    );
    event KeeperBountyUpdated(uint256 bps, uint256 max);
    event SwapAdapterUpdated(address indexed previous, address indexed current);

    error ExpiredDeadline();
    error InvalidSignature();
    error InvalidNonce(uint256 expected, uint256 provided);
    error AgentNotTradable(uint256 agentId);
    error VaultMismatch(uint256 agentId, address expected, address provided);
    error TokenNotAllowed(address token);
    error PositionAlreadyOpen(uint256 agentId, address token);
    /// @notice The ladder is empty, a rule is malformed or out of order, or the last one does not sell everything
    error InvalidExitRules();
    /// @notice The ladder is well formed but not within the track's bounds
    error ExitRulesOutOfBounds();
    error AllocationNotActive(uint256 agentId);
    error ExceedsAllocationCap(uint256 agentId, uint256 used, uint256 cap);
    error ExceedsMaxTradeSize(uint256 tradeSize, uint256 maxTradeSize);
    error ExceedsDailyTurnover(uint256 agentId, uint256 turnover, uint256 max);
    error ExceedsDailyLoss(uint256 agentId, uint256 lossUsdc, uint256 maxLossUsdc);
    error TriggerNotMet(uint256 positionId);
    error PositionNotOpen(uint256 positionId);
    error PositionAgentMismatch(uint256 positionId, uint256 agentId);
    error InvalidReduceAmount(uint256 positionId);
    error TooManyExitRules(uint256 count);
    error PendingRuleAlreadyTriggered(uint256 positionId);
    error AgentNotSuspended(uint256 agentId);
    error RegistryPaused();
    error VaultTrackNotActive(address vault, uint256 trackId);
    error BpsOutOfRange(uint256 bps);
    error LedgerExceedsVaultBalance(address token, uint256 ledger, uint256 balance);
    error SlippageExceeded(uint256 minimum, uint256 received);
    error InvalidTradeAmount(uint256 usdcAmount);
    error InsufficientIdleAssets(uint256 idle, uint256 required);
    error OnlySelf(address caller);
    error ZeroAddress();

    /// @notice Buys a token for an agent that has no open position in it; only the executor role
    /// @dev The checks, in this order; the first that fails is the error:
    ///  1. `ExpiredDeadline`, `AgentNotFound` (registry), `InvalidNonce`, `InvalidSignature`: the head of all four intents
    ///  2. `RegistryPaused`, `AgentNotTradable`, `VaultMismatch`
    ///  3. `TradingPaused` (vault), `VaultTrackNotActive`, `TokenNotAllowed`, `BpsOutOfRange` (slippage),
    ///     `InvalidTradeAmount`
    ///  4. `TooManyExitRules`, `InvalidExitRules`, `ExitRulesOutOfBounds`
    ///  5. `PositionAlreadyOpen`
    ///  6. `AllocationNotActive`, `ExceedsAllocationCap`, `ExceedsMaxTradeSize`, `ExceedsDailyTurnover`,
    ///     `ExceedsDailyLoss`, `InsufficientIdleAssets`; all assets are valued before the purchase
    ///  7. the oracle's errors, the adapter's errors, `SlippageExceeded`, `LedgerExceedsVaultBalance`
    /// The least number of tokens is the larger one of `minTokenOut` and what the oracle's price gives less
    /// `maxSlippageBps`. A rule that the fill's own slippage already meets is taken: it can only fire on a later price.
    function openPosition(PositionIntent calldata intent, bytes calldata signature)
        external
        returns (uint256 positionId);

    /// @notice Buys more of an open position's token; only the executor role
    /// @dev The checks of `openPosition`, with `PositionNotFound`, `PositionAgentMismatch`, `PositionNotOpen` in place of
    /// `VaultMismatch`, and without those of a ladder and of another open position. The entry price is averaged by cost,
    /// the position keeps the larger slippage, and its rules wait for the next price.
    function addToPosition(AddToPositionIntent calldata intent, bytes calldata signature)
        external
        returns (uint256 tokensAdded);

    /// @notice Sells a share of what an open position has left; only the executor role
    /// @dev The checks: those of every intent's head, `PositionNotFound`, `PositionAgentMismatch`, `PositionNotOpen`,
    /// `BpsOutOfRange` (share), `TradingPaused`, the oracle's errors, `InvalidReduceAmount`, the adapter's errors,
    /// `SlippageExceeded`. An agent of any status may sell, with the registry paused and the token no longer allowed:
    /// getting out only lowers risk. All is sold when what would be left is worth less than one USDC unit.
    function reducePosition(ReducePositionIntent calldata intent, bytes calldata signature)
        external
        returns (uint256 usdcOut);

    /// @notice Replaces the pending rules of an open position; only the executor role
    /// @dev The checks: those of every intent's head, `PositionNotFound`, `PositionAgentMismatch`, `PositionNotOpen`,
    /// `TooManyExitRules` (fired and new ones), `InvalidExitRules`, `ExitRulesOutOfBounds`,
    /// `PendingRuleAlreadyTriggered`. An agent of any status may update, whatever is paused; the last known price decides
    /// what has triggered, however old it is.
    function updateExitLadder(UpdateExitLadderIntent calldata intent, bytes calldata signature) external;

    /// @notice Fires the first pending rule, in array order, whose trigger is met; anyone, for a bounty
    /// @dev The price must have been observed after the ladder last changed and the position last increased. The bounty
    /// is a share of the proceeds, at most `maxKeeperBounty`, and never out of what the position's slippage promises.
    /// @return usdcOut What the vault keeps: the proceeds less the bounty
    function executeExit(uint256 positionId) external returns (uint256 usdcOut);

    /// @notice Fires what is due in many positions; a position that cannot be exited never stops the others
    /// @return statuses What happened to each
    /// @return reasons The revert data of each that was not executed
    function executeExits(uint256[] calldata positionIds)
        external
        returns (ExitStatus[] memory statuses, bytes[] memory reasons);

    /// @notice Sells all of a suspended agent's position, whatever is paused or stale; only the operator role
    /// @dev While the price is fresh the proceeds must be at least 80 % of the oracle's value; otherwise anything but
    /// nothing will do.
    function forceClose(uint256 positionId) external;

    /// @notice `forceClose` with the operator's own least proceeds in place of the router's floor
    function forceCloseWithFloor(uint256 positionId, uint256 minUsdcOut) external;

    /// @notice Sets the keeper's share of an exit's proceeds, at most `max` USDC base units; only the admin
    function setKeeperBounty(uint256 bps, uint256 max) external;
    function setSwapAdapter(address adapter) external;

    function nonces(uint256 agentId) external view returns (uint256);

    /// @notice The USDC an agent bought with on a UTC day (`timestamp / 86400`)
    function dailyTurnoverUsdc(uint256 agentId, uint256 day) external view returns (uint256);
    function dailyRealizedPnlUsdc(uint256 agentId, uint256 day) external view returns (int256);
    function lifetimeRealizedPnlUsdc(uint256 agentId) external view returns (int256);
    function lifetimeTurnoverUsdc(uint256 agentId) external view returns (uint256);

    /// @notice The highest lifetime realized PnL after any trade of the agent, at least 0
    function peakRealizedPnlUsdc(uint256 agentId) external view returns (uint256);
    function tradeCount(uint256 agentId) external view returns (uint256);
    /// @notice Whether a trade is under way in this transaction: vaults take no deposits then
    function tradeInProgress() external view returns (bool);
    function keeperBountyBps() external view returns (uint256);
    function maxKeeperBounty() external view returns (uint256);
    function usdc() external view returns (address);
    function agentRegistry() external view returns (address);
    function allocationManager() external view returns (address);
    function positionManager() external view returns (address);
    function swapAdapter() external view returns (address);
    function vaultTrackRegistry() external view returns (address);

    /// @notice The EIP-712 digest that the agent's signer signs for an open
    function hashOpenPosition(PositionIntent calldata intent) external view returns (bytes32);
    function hashAddToPosition(AddToPositionIntent calldata intent) external view returns (bytes32);
    function hashReducePosition(ReducePositionIntent calldata intent) external view returns (bytes32);
    function hashUpdateExitLadder(UpdateExitLadderIntent calldata intent) external view returns (bytes32);

    /// @notice `keccak256(abi.encode(bytes32[] ruleHashes))`, the `exitsHash` of the typed data
    function hashExits(IPositionManager.ExitRule[] calldata exits) external pure returns (bytes32);
    function OPEN_POSITION_TYPEHASH() external view returns (bytes32);
    function ADD_TO_POSITION_TYPEHASH() external view returns (bytes32);
    function REDUCE_POSITION_TYPEHASH() external view returns (bytes32);
    function UPDATE_EXIT_LADDER_TYPEHASH() external view returns (bytes32);
}
