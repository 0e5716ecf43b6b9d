// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IPositionManager} from "./IPositionManager.sol";

/// @title Executes signed intents, exit rules that are due, and the operator's closes
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
        Failed,
        /// Sold a part; the rest stays due
        PartlyExecuted,
        /// Due, but the venue takes nothing at the present floor; recorded, so that the floor widens
        Deferred
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
    /// @notice An exit is due and the venue takes nothing at the present floor, `slippageBps` below the oracle's value
    event ExitDeferred(
        uint256 indexed positionId, uint256 indexed agentId, uint8 ruleIndex, uint256 dueSince, uint256 slippageBps
    );
    /// @notice An exit sold a part of its rule's share; `tokensLeft` stay due. A keeper is paid as for a whole exit.
    event ExitPartlyExecuted(
        uint256 indexed positionId,
        uint256 indexed agentId,
        uint8 ruleIndex,
        address indexed keeper,
        uint256 usdcOut,
        uint256 keeperBounty,
        uint256 tokensLeft
    );
    /// @notice A sale of a position that its agent's owner closes (`OwnerControls.closeAll`); `tokensLeft` stay to be sold
    /// @param usdcOut What the vault keeps: the proceeds less the bounty
    event OwnerCloseExecuted(
        uint256 indexed positionId,
        uint256 indexed agentId,
        address indexed keeper,
        uint256 tokensSold,
        uint256 usdcOut,
        uint256 keeperBounty,
        uint256 tokensLeft
    );
    /// @notice A force close sold a part of the position; `tokensLeft` stay open
    event PositionPartlyForceClosed(
        uint256 indexed positionId,
        uint256 indexed agentId,
        address indexed operator,
        uint256 usdcOut,
        uint256 tokensLeft
    );
    /// @notice The agent's owner or signer voided the intent with this nonce
    event NonceCancelled(uint256 indexed agentId, uint256 nonce, address indexed by);
    event TradePolicyUpdated(address indexed previous, address indexed current);
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
    /// @notice Only the agent's owner or signer cancels a nonce
    error NotOwnerOrSigner(uint256 agentId, address caller);
    /// @notice The agent's fills lost too much beyond what fair ones cost
    error ExceedsWaste(uint256 agentId, uint256 wasteUsdc, uint256 maxWasteUsdc);
    /// @notice The agent's realized equity is too far below its peak to buy more
    error ExceedsMaxDrawdown(uint256 agentId, uint256 drawdownBps, uint256 maxDrawdownBps);
    /// @notice The position was opened with other capital than the agent trades with now
    error CapitalModeMismatch(uint256 positionId, uint8 capitalMode);
    /// @notice A rule of the position has sold a part of its share; the rest comes first
    error ExitInProgress(uint256 positionId);
    /// @notice The venue takes nothing at the present floor, and the exit is recorded as due already
    error ExitFloorNotMet(uint256 positionId, uint256 slippageBps, uint256 dueSince);
    error ZeroAddress();
    /// @notice The agent's owner lets it buy nothing: the mode is not `Trade`, or the mandate ended at `validUntil`
    error MandateStopsBuying(uint256 agentId, uint8 mode, uint256 validUntil);
    /// @notice The agent's owner stopped it: its stop-losses may only become tighter
    error MandateForbidsLooserLadder(uint256 positionId);

    /// @notice Buys a token for an agent that has no open position in it; only the executor role
    /// @dev The checks, in this order; the first that fails is the error:
    ///  1. `ExpiredDeadline`, `AgentNotFound` (registry), `InvalidNonce`, `InvalidSignature`: the head of all four intents
    ///  2. `RegistryPaused`, `AgentNotTradable`, `MandateStopsBuying`, `VaultMismatch`
    ///  3. `TradingPaused` (vault), `TokenNotAllowed`, `BpsOutOfRange` (slippage), `InvalidTradeAmount`
    ///  4. `PositionAlreadyOpen`
    ///  5. `VaultTrackNotActive`, `TooManyExitRules`, `InvalidExitRules`, `ExitRulesOutOfBounds`
    ///  6. `AllocationNotActive`, `ExceedsAllocationCap`, `ExceedsMaxTradeSize`, `ExceedsDailyTurnover`,
    ///     `ExceedsDailyLoss`, `ExceedsMaxDrawdown`, `InsufficientIdleAssets`; all assets are valued before the purchase;
    ///     then the limits of the agent's mandate (`IOwnerControls.checkBuy`)
    ///  7. the oracle's errors, `DeadlineTooFar`, `SlippageAboveLimit`, `TradeTooSmall`, `SpotPriceDeviation`,
    ///     `TwapUnavailable`, `TwapDeviation` (trade policy)
    ///  8. the adapter's errors, `SlippageExceeded`, `LedgerExceedsVaultBalance`
    /// The least number of tokens is the larger one of `minTokenOut` and what the oracle's price gives less
    /// `maxSlippageBps`. A rule that the fill's own slippage already meets is accepted: it can only fire on a later price.
    ///
    /// Stricter than protocol.md: the cap that counts is `AllocationManager.effectiveCapUsdc`; the daily limits cover yesterday's
    /// part of the last 24 hours too; a drawdown beyond the track's limit stops buying; a required stop-loss must sell
    /// everything; the trade policy bounds slippage, size, deadline, and the pool's distance from the oracle.
    ///
    /// An agent on simulated capital passes the same checks, idle USDC aside. It buys on paper, at the worse one of what
    /// the pool would give, fee and price impact included, and the oracle's price; no token and no USDC moves.
    function openPosition(PositionIntent calldata intent, bytes calldata signature)
        external
        returns (uint256 positionId);

    /// @notice Buys more of an open position's token; only the executor role
    /// @dev The checks of `openPosition`, with `PositionNotFound`, `PositionAgentMismatch`, `PositionNotOpen` in place of
    /// `VaultMismatch`, and without those of a ladder and of another open position; `VaultTrackNotActive` comes before
    /// `AllocationNotActive`. `CapitalModeMismatch` comes after the limits, `ExitInProgress` and
    /// `PendingRuleAlreadyTriggered` after the oracle's errors. The entry price is averaged by cost, and the rules wait for the next price.
    ///
    /// Stricter than protocol.md: an add is refused while a pending rule is met, whatever it waits for; and the position
    /// keeps its own slippage, not the larger one.
    function addToPosition(AddToPositionIntent calldata intent, bytes calldata signature)
        external
        returns (uint256 tokensAdded);

    /// @notice Sells a share of what an open position has left; only the executor role
    /// @dev The checks: those of every intent's head, `PositionNotFound`, `PositionAgentMismatch`, `PositionNotOpen`,
    /// `BpsOutOfRange` (share), `TradingPaused`, the oracle's errors, `InvalidReduceAmount`, `DeadlineTooFar`,
    /// `TradeTooSmall` (a part), `SpotPriceDeviation`, `TwapUnavailable`, `TwapDeviation`, the adapter's errors,
    /// `SlippageExceeded`. An agent of any status may sell, with the registry paused and the token no longer allowed.
    /// The position is closed when the rest would be worth less than one USDC unit.
    ///
    /// Stricter than protocol.md: the slippage is the position's own within the trade policy's bounds.
    ///
    /// A reduction of an order (`IOrderBook`) pays whoever executes it the bounty of an exit.
    /// @return usdcOut What the vault keeps: the proceeds less the bounty
    function reducePosition(ReducePositionIntent calldata intent, bytes calldata signature)
        external
        returns (uint256 usdcOut);

    /// @notice Replaces the pending rules of an open position; only the executor role
    /// @dev The checks: those of every intent's head, `PositionNotFound`, `PositionAgentMismatch`, `PositionNotOpen`,
    /// `AgentNotTradable` (a failed or exited agent), `ExitInProgress`, `DeadlineTooFar`, `TooManyExitRules` (fired and
    /// new ones), `InvalidExitRules`, `ExitRulesOutOfBounds`, `PendingRuleAlreadyTriggered`. Pauses do not matter; the
    /// last known price decides what has triggered, however old it is.
    ///
    /// Stricter than protocol.md: a stop-loss that is met stays; and a failed or exited agent changes nothing.
    function updateExitLadder(UpdateExitLadderIntent calldata intent, bytes calldata signature) external;

    /// @notice Fires the first pending rule, in array order, whose trigger is met; anyone, for a bounty
    /// @dev The price must have been observed after the ladder last changed and the position last increased. Every unit
    /// sells at the trade policy's floor or better, whatever slippage was signed: the floor is `exitSlippageStartBps`
    /// below the oracle's price when the exit becomes due and widens to `maxExitSlippageBps`.
    ///
    /// An exit is due since its first attempt that the pool did not fill completely. That attempt sells what the pool
    /// takes (`ExitPartlyExecuted`), or nothing (`ExitDeferred`, returns 0); a rule that has sold a part goes on, whatever
    /// the price is then, and is consumed when its share is sold. An attempt that sells nothing within a minute of the
    /// last one reverts `ExitFloorNotMet` or the policy's error. A record that nobody confirms for 15 minutes starts
    /// over. Starting the record early gains an attacker nothing: the rule must be met at a fresh price, and until the
    /// floor has widened any keeper fills the exit at the tighter one.
    ///
    /// The bounty is a share of the proceeds, at most `maxKeeperBounty` for all exits of an agent per UTC day, and never
    /// out of what the floor promises. A simulated exit pays none.
    /// @return usdcOut What the vault keeps: the proceeds less the bounty
    function executeExit(uint256 positionId) external returns (uint256 usdcOut);

    /// @notice Fires what is due in many positions; a position that cannot be exited never stops the others
    /// @dev Each exit gets 3,000,000 gas at most; `executeExit` gives all there is.
    /// @return statuses What happened to each
    /// @return reasons The revert data of each that reverted
    function executeExits(uint256[] calldata positionIds)
        external
        returns (ExitStatus[] memory statuses, bytes[] memory reasons);

    /// @notice Sells a position of an agent that is not active, whatever is paused or stale; only the operator role
    /// @dev It sells what the pool takes at the trade policy's largest exit slippage below the pool's own average price, so
    /// whoever moves the pool for the moment gains nothing. A fresh price of the oracle must agree with that average. The rest
    /// stays open for another call. The errors: `PositionNotFound`, `PositionNotOpen`, `AgentNotSuspended` (an active agent),
    /// the trade policy's, `ExitFloorNotMet` when the pool takes nothing.
    function forceClose(uint256 positionId) external;

    /// @notice Sets the keeper's share of an exit's proceeds, at most `max` USDC base units; only the admin
    function setKeeperBounty(uint256 bps, uint256 max) external;
    function setSwapAdapter(address adapter) external;

    /// @notice Replaces the trade policy; only the admin
    function setTradePolicy(address policy) external;

    /// @notice Voids the agent's next intent, which must carry this nonce; only the agent's owner or signer
    function cancelNonce(uint256 agentId, uint256 nonce) external;

    function nonces(uint256 agentId) external view returns (uint256);

    /// @notice The USDC an agent bought with on a UTC day (`timestamp / 86400`)
    function dailyTurnoverUsdc(uint256 agentId, uint256 day) external view returns (uint256);
    function dailyRealizedPnlUsdc(uint256 agentId, uint256 day) external view returns (int256);
    function lifetimeRealizedPnlUsdc(uint256 agentId) external view returns (int256);
    function tradePolicy() external view returns (address);
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
}
