// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title The venue as the router sees it
/// @notice The router has the vault pay what is sold to the adapter first; the proceeds go straight to the vault.
/// What came out is measured by the vault's balance: the venue is not believed.
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
}
