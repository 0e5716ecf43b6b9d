// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title What can be computed from the books and the prices
/// @notice Values that need a price revert `StalePrice` while that price is stale.
interface ITradeRouterLens {
    /// @notice Whether `executeExit` would find a due rule, pauses left aside
    function isTriggerMet(uint256 positionId) external view returns (bool);

    /// @notice The oracle price against the entry price, towards zero; 0 for a closed position
    function positionPnlBps(uint256 positionId) external view returns (int256);

    /// @notice The oracle value of the remaining tokens less their cost basis; 0 for a closed position
    function positionUnrealizedPnlUsdc(uint256 positionId) external view returns (int256);

    /// @notice The allocation cap plus the highest lifetime realized PnL after any of the agent's trades, at least 0
    function peakEquityUsdc(uint256 agentId) external view returns (uint256);

    /// @notice The allocation cap plus lifetime realized and present unrealized PnL, never below 0
    function currentEquityUsdc(uint256 agentId) external view returns (uint256);

    /// @notice How far the current equity is below the peak, in bps of the peak; 0 at or above it
    function currentDrawdownBps(uint256 agentId) external view returns (uint256);

    /// @notice The agent's swaps: opens, adds, reduces, fired rules, force closes
    function tradeCount(uint256 agentId) external view returns (uint256);
    function positionsOpened(uint256 agentId) external view returns (uint256);
    function positionsClosed(uint256 agentId) external view returns (uint256);

    /// @notice The USDC the agent ever bought with: the sum of its daily turnovers
    function lifetimeTurnoverUsdc(uint256 agentId) external view returns (uint256);
    function tradeRouter() external view returns (address);
}
