// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title Figures computed from the books and the prices
/// @notice Values that need a price revert `StalePrice` while that price is stale.
interface ITradeRouterLens {
    /// @notice The exit of a position as a keeper would find it now
    /// @param isDue Whether a rule is due at the present price, or has sold a part of its share, or the owner closes all
    /// @param ruleIndex The rule that would fire; `CLOSE_ALL_RULE` when the agent's owner closes all
    /// @param dueSince When it was recorded as due; 0 when nobody has; when the owner began to close all
    /// @param tokensToSell What `executeExit` would offer the venue
    /// @param slippageBps How far below the oracle's value it would sell at most
    /// @param floorUsdc The least proceeds of `tokensToSell`
    struct ExitState {
        bool isDue;
        uint8 ruleIndex;
        uint64 dueSince;
        uint256 tokensToSell;
        uint256 slippageBps;
        uint256 floorUsdc;
    }

    /// @notice Returns whether `executeExit` would find something to sell; ignores pauses
    function isTriggerMet(uint256 positionId) external view returns (bool);

    /// @notice Returns the oracle value of the remaining tokens against their cost basis in bps, rounded towards zero; 0 for a
    /// closed position
    function positionPnlBps(uint256 positionId) external view returns (int256);

    /// @notice The oracle value of the remaining tokens less their cost basis; 0 for a closed position
    function positionUnrealizedPnlUsdc(uint256 positionId) external view returns (int256);

    /// @notice The allocation cap plus the highest PnL realized on the agent's track, at least 0
    function peakEquityUsdc(uint256 agentId) external view returns (uint256);

    /// @notice The allocation cap plus the PnL realized on the agent's track and the unrealized one, at least 0
    function currentEquityUsdc(uint256 agentId) external view returns (uint256);

    /// @notice How far the current equity is below the peak, in bps of the peak; 0 at or above it
    function currentDrawdownBps(uint256 agentId) external view returns (uint256);

    /// @notice The agent's swaps: opens, adds, reduces, fired rules, force closes
    function tradeCount(uint256 agentId) external view returns (uint256);
    function positionsOpened(uint256 agentId) external view returns (uint256);
    function positionsClosed(uint256 agentId) external view returns (uint256);

    /// @notice The USDC the agent ever bought with: the sum of its daily turnovers
    function lifetimeTurnoverUsdc(uint256 agentId) external view returns (uint256);

    /// @notice Returns what `executeExit` would do with a position; ignores pauses and the pool
    function exitStateOf(uint256 positionId) external view returns (ExitState memory);

    function tradeRouter() external view returns (address);
    function CLOSE_ALL_RULE() external view returns (uint8);
}
