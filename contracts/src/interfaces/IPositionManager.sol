// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title The position book: positions, their exit ladders, and their holders
/// @notice Position ids are global and run from 1 to `positionCount()`. USDC amounts have 6 decimals.
interface IPositionManager {
    enum TriggerType {
        StopLoss,
        TakeProfit
    }

    enum PositionStatus {
        Open,
        Closed
    }

    /// @param triggerType A `TriggerType`
    /// @param triggerBps PnL of the tokens' value against their cost; negative for a stop-loss, positive for a take-profit
    /// @param exitBps The share of the remaining tokens to sell
    struct ExitRule {
        uint8 triggerType;
        int256 triggerBps;
        uint16 exitBps;
    }

    /// @param entryPriceUsdc USDC base units per whole token, from the fills, averaged by cost; for display: triggers use
    /// the cost basis
    /// @param usdcCostBasis What the remaining tokens cost
    /// @param status A `PositionStatus`
    /// @param nextRuleIndex The rules before it have fired, in that order; those from it on are pending
    struct Position {
        uint256 positionId;
        uint256 agentId;
        address vault;
        address token;
        uint256 tokenAmount;
        uint256 entryPriceUsdc;
        uint256 usdcCostBasis;
        uint16 maxSlippageBps;
        uint8 status;
        uint8 nextRuleIndex;
        uint64 openedAt;
        int256 realizedPnlUsdc;
    }

    /// @notice The position as the router reads it before a trade: its three slots, decoded
    /// @param ladder The packed rules, see `ExitLadder`
    /// @param armedAt When the ladder last changed or the position last increased
    /// @param armedRound The price oracle's round of the token at that time: a rule fires on a later one only
    /// @param capitalMode A `CapitalMode` of the track registry
    /// @param hasDueExit Whether `dueExitOf` holds something
    struct PositionState {
        uint256 agentId;
        address token;
        uint256 tokenAmount;
        uint256 usdcCostBasis;
        uint256 maxSlippageBps;
        uint256 ladder;
        uint256 armedAt;
        uint256 armedRound;
        uint8 capitalMode;
        bool hasDueExit;
    }

    /// @notice An exit that became due and has not been filled, or not completely
    /// @param since When it was first recorded as due: the slippage of the exit widens from here
    /// @param seenAt When it was last found due
    /// @param ruleIndex The rule that is due
    /// @param tokensLeft What the rule still has to sell after a partial fill; 0 before the first fill
    struct DueExit {
        uint40 since;
        uint40 seenAt;
        uint8 ruleIndex;
        uint128 tokensLeft;
    }

    /// @notice A new position
    struct NewPosition {
        uint256 agentId;
        address vault;
        address token;
        uint256 tokenAmount;
        uint256 usdcAmount;
        uint256 entryPriceUsdc;
        uint256 maxSlippageBps;
        uint256 ladder;
        uint256 priceRound;
        uint8 capitalMode;
    }

    /// @notice A buy into an open position
    /// @param entryPriceUsdc The new entry price, averaged by cost
    struct Increase {
        uint256 positionId;
        uint256 tokensAdded;
        uint256 usdcAdded;
        uint256 entryPriceUsdc;
        uint256 priceRound;
    }

    event PositionOpened(
        uint256 indexed positionId,
        uint256 indexed agentId,
        address indexed vault,
        address token,
        uint256 tokenAmount,
        uint256 entryPriceUsdc,
        uint256 usdcCostBasis
    );
    event PositionIncreased(
        uint256 indexed positionId,
        uint256 indexed agentId,
        uint256 tokensAdded,
        uint256 usdcAdded,
        uint256 entryPriceUsdc
    );
    /// @param usdcReleased The cost basis of what was sold
    event PositionReduced(uint256 indexed positionId, uint256 indexed agentId, uint256 tokenSold, uint256 usdcReleased);
    /// @param ruleIndex Where the fired rule stands now: the `nextRuleIndex` before it fired
    event PositionLadderExitApplied(
        uint256 indexed positionId, uint256 indexed agentId, uint8 ruleIndex, uint256 tokenSold, uint256 usdcReleased
    );
    event PositionExitLadderUpdated(uint256 indexed positionId, uint256 indexed agentId, uint8 nextRuleIndex);
    event PositionClosed(uint256 indexed positionId, uint256 indexed agentId, int256 realizedPnlUsdc);
    /// @notice The position was opened on paper: no token and no USDC moves for it. Real ones emit nothing.
    event PositionSimulated(uint256 indexed positionId, uint256 indexed agentId);
    /// @notice A rule was found due and could not be filled completely; its slippage widens from `since`
    event PositionExitDue(uint256 indexed positionId, uint256 indexed agentId, uint8 ruleIndex, uint256 since);
    /// @notice A due rule sold a part of its share; it stays pending until the rest is sold
    event PositionLadderExitPartlyApplied(
        uint256 indexed positionId,
        uint256 indexed agentId,
        uint8 ruleIndex,
        uint256 tokenSold,
        uint256 usdcReleased,
        uint256 tokensLeft
    );
    event TradeRouterUpdated(address indexed previous, address indexed current);

    error PositionNotFound(uint256 positionId);
    error NoPendingExitRule(uint256 positionId);
    error OnlyTradeRouter(address caller);
    error ZeroAddress();

    /// @notice Enters a new position; only the trade router, which has checked that the agent has none in the token
    function openPosition(NewPosition calldata entry) external returns (uint256 positionId);

    /// @notice Enters a buy into an open position; only the trade router
    function increasePosition(Increase calldata entry) external;

    /// @notice Enters a sale, which closes the position when it is of all tokens; only the trade router
    function reducePosition(uint256 positionId, uint256 tokenSold, uint256 usdcProceeds) external;

    /// @notice Enters a sale by the pending rule at `ruleIndex` and moves that rule to the fired ones; only the trade router
    /// @return firedIndex Where the rule stands now
    /// @return released The cost basis of what was sold, pro rata and rounded up; all of it at the close
    function applyLadderExit(uint256 positionId, uint256 ruleIndex, uint256 tokenSold, uint256 usdcProceeds)
        external
        returns (uint8 firedIndex, uint256 released);

    /// @notice Enters a sale by the pending rule at `ruleIndex` that leaves `tokensLeft` of its share unsold; only the trade
    /// router
    /// @param dueSince When the rule became due
    function applyPartialLadderExit(
        uint256 positionId,
        uint256 ruleIndex,
        uint256 tokenSold,
        uint256 usdcProceeds,
        uint256 tokensLeft,
        uint256 dueSince
    ) external returns (uint256 released);

    /// @notice Records that the pending rule at `ruleIndex` is due and could not be filled; only the trade router
    function recordDueExit(uint256 positionId, uint256 ruleIndex, uint256 dueSince) external;

    /// @notice Replaces the pending rules of a position; only the trade router
    /// @dev The checks, in this order: those of `ExitRules`, `MandateForbidsLooserLadder`, `PendingRuleAlreadyTriggered`.
    /// @param mustTighten Whether the new rules must protect at least as well as the pending ones
    /// @return nextRuleIndex How many rules have fired
    function updateExitLadder(
        uint256 positionId,
        ExitRule[] calldata rules,
        address vault,
        uint256 trackId,
        bool mustTighten
    ) external returns (uint8 nextRuleIndex);
    function setTradeRouter(address router) external;

    function getPosition(uint256 positionId) external view returns (Position memory);

    /// @notice All rules: the fired ones in the order in which they fired, then the pending ones
    function getExitRules(uint256 positionId) external view returns (ExitRule[] memory);

    /// @notice The first pending rule; reverts `NoPendingExitRule` for a closed position without one
    function getNextExitRule(uint256 positionId) external view returns (ExitRule memory);
    function getOpenPositionIds(uint256 agentId) external view returns (uint256[] memory);
    function openPositionCountByAgent(uint256 agentId) external view returns (uint256);

    /// @return positionId 0 when the agent has no open position in the token
    function openPositionId(uint256 agentId, address token) external view returns (uint256 positionId);

    /// @notice Returns what the vault holds of a token for an agent; 0 for a simulated position
    function agentTokenBalance(uint256 agentId, address token) external view returns (uint256);

    /// @notice Returns what all agents hold of a token on real capital, over all registered vaults
    function totalTokenLedger(address token) external view returns (uint256);
    function realizedPnlUsdc(uint256 positionId) external view returns (int256);
    function positionCount() external view returns (uint256);
    function positionsOpenedByAgent(uint256 agentId) external view returns (uint256);
    function positionsClosedByAgent(uint256 agentId) external view returns (uint256);

    /// @notice Returns the packed rules of a position to open
    /// @dev The checks, in this order: `PositionAlreadyOpen`, `VaultTrackNotActive`, those of `ExitRules`.
    function newLadder(uint256 agentId, address token, address vault, uint256 trackId, ExitRule[] calldata rules)
        external
        view
        returns (uint256 ladder);

    /// @notice Returns what the agent's open positions are worth at the last prices, however old, less what they cost
    function unrealizedPnlOf(uint256 agentId) external view returns (int256);

    /// @notice Returns what an agent would have made on a paper track if it had sold nothing: the most it ever held of each
    /// token, at the last price, less what that cost, where that is a gain
    function holdingPnlOf(uint256 agentId, uint256 trackId) external view returns (int256);
    function positionStateOf(uint256 positionId) external view returns (PositionState memory);

    /// @notice Returns the `CapitalMode` that the position was opened with
    function capitalModeOf(uint256 positionId) external view returns (uint8);

    /// @notice Returns the exit that is recorded as due; all zero when there is none
    function dueExitOf(uint256 positionId) external view returns (DueExit memory);
    function tradeRouter() external view returns (address);
    function agentRegistry() external view returns (address);
    function vaultTrackRegistry() external view returns (address);
}
