// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title A venue's own prices, as the swap adapter returns them
interface IPoolPrices {
    /// @notice Returns the venue's prices of a token in USD with 8 decimals, fees not included
    /// @param window The length of the time-weighted average in seconds
    /// @return spotPrice The price before the next swap
    /// @return twapPrice The average over `window`, or over the venue's history where that is shorter; 0 when there is
    /// none
    function pricesOf(address token, uint32 window) external view returns (uint256 spotPrice, uint256 twapPrice);
}
