// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IERC20Metadata} from "@openzeppelin/contracts/token/ERC20/extensions/IERC20Metadata.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {ISwapAdapter} from "../../src/interfaces/ISwapAdapter.sol";
import {PriceMath} from "../../src/libraries/PriceMath.sol";

/// @title A venue of the embedded chain that trades any amount at the price it is given
/// @notice What it pays is known to the unit, so a reference can predict every trade. It pays out of its own balance.
contract FixedPriceVenue is ISwapAdapter {
    using SafeERC20 for IERC20;

    IERC20 private immutable _usdc;

    /// @notice In USD with 8 decimals
    mapping(address token => uint256) public priceOf;

    constructor(address usdc) {
        _usdc = IERC20(usdc);
    }

    function setPrice(address token, uint256 price) external {
        priceOf[token] = price;
    }

    /// @inheritdoc ISwapAdapter
    function swapUsdcForToken(address vault, address token, uint256 usdcIn, uint256 minTokenOut)
        external
        returns (uint256 tokenOut)
    {
        tokenOut = quoteUsdcForToken(token, usdcIn);
        if (tokenOut < minTokenOut) revert SlippageExceeded(minTokenOut, tokenOut);
        IERC20(token).safeTransfer(vault, tokenOut);
    }

    /// @inheritdoc ISwapAdapter
    function swapTokenForUsdc(address vault, address token, uint256 tokenIn, uint256 minUsdcOut)
        external
        returns (uint256 usdcOut)
    {
        (, usdcOut) = quoteTokenForUsdc(token, tokenIn, 0);
        if (usdcOut < minUsdcOut) revert SlippageExceeded(minUsdcOut, usdcOut);
        _usdc.safeTransfer(vault, usdcOut);
    }

    /// @inheritdoc ISwapAdapter
    function sellTokenUpTo(address vault, address token, uint256 tokenIn, uint256 minPrice)
        external
        returns (uint256 sold, uint256 usdcOut)
    {
        (sold, usdcOut) = quoteTokenForUsdc(token, tokenIn, minPrice);
        if (sold == 0) IERC20(token).safeTransfer(vault, tokenIn);
        else _usdc.safeTransfer(vault, usdcOut);
    }

    /// @inheritdoc ISwapAdapter
    function poolFeeOf(address) external pure returns (uint24) {
        return 0;
    }

    /// @inheritdoc ISwapAdapter
    function pricesOf(address token, uint32) external view returns (uint256 spotPrice, uint256 twapPrice) {
        return (priceOf[token], priceOf[token]);
    }

    /// @inheritdoc ISwapAdapter
    function quoteUsdcForToken(address token, uint256 usdcIn) public view returns (uint256 tokenOut) {
        return PriceMath.tokensFor(usdcIn, priceOf[token], IERC20Metadata(token).decimals());
    }

    /// @inheritdoc ISwapAdapter
    function quoteTokenForUsdc(address token, uint256 tokenIn, uint256 minPrice)
        public
        view
        returns (uint256 sold, uint256 usdcOut)
    {
        if (priceOf[token] * 1e10 < minPrice) return (0, 0);
        return (tokenIn, PriceMath.usdcValue(tokenIn, priceOf[token], IERC20Metadata(token).decimals()));
    }
}
