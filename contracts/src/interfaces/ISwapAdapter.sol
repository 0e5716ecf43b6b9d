// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title The venue as the router sees it
/// @notice The vault pays what is sold to the adapter first; the proceeds go straight to the vault. The adapter measures
/// them by the vault's balance and does not trust what the venue returns.
interface ISwapAdapter {
    error SlippageExceeded(uint256 minimum, uint256 received);

    /// @notice Buys `token` for `vault` with `usdcIn`, which the adapter holds; only the trade router
    function swapUsdcForToken(address vault, address token, uint256 usdcIn, uint256 minTokenOut)
        external
        returns (uint256 tokenOut);

    /// @notice Sells `tokenIn`, which the adapter holds, for USDC to `vault`; only the trade router
    function swapTokenForUsdc(address vault, address token, uint256 tokenIn, uint256 minUsdcOut)
        external
        returns (uint256 usdcOut);

    /// @notice Sells as much of `tokenIn` as the venue takes at `minPrice` or better, and returns the rest to the vault;
    /// only the trade router
    /// @param minPrice USD per whole token with 18 decimals that every unit sold must bring at least, fees deducted
    /// @return sold How much of `tokenIn` was sold; 0 when the venue takes nothing at this price, or rounds its fee up by more than
    /// one unit of the token
    function sellTokenUpTo(address vault, address token, uint256 tokenIn, uint256 minPrice)
        external
        returns (uint256 sold, uint256 usdcOut);

    /// @notice Returns what `swapUsdcForToken` would buy now, fees and price impact included, and moves nothing; only the
    /// trade router
    function quoteUsdcForToken(address token, uint256 usdcIn) external returns (uint256 tokenOut);

    /// @notice Returns what `sellTokenUpTo` would sell now, fees and price impact included, and moves nothing; only the
    /// trade router
    /// @param minPrice 0 = no limit but the liquidity there is
    function quoteTokenForUsdc(address token, uint256 tokenIn, uint256 minPrice)
        external
        returns (uint256 sold, uint256 usdcOut);

    /// @notice Returns what the venue takes of an amount that is traded for a token, in millionths: after a trade in the
    /// same transaction what it took
    function poolFeeOf(address token) external view returns (uint24);

    /// @notice Returns the venue's prices of a token in USD with 8 decimals, fees not included
    /// @param window The length of the time-weighted average in seconds; 0 = none wanted
    /// @return spotPrice The price before the next swap
    /// @return twapPrice The average over `window`, or over the venue's history where that is shorter; 0 when there is
    /// none
    function pricesOf(address token, uint32 window) external view returns (uint256 spotPrice, uint256 twapPrice);
}
