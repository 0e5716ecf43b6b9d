// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";

/// @title Conversions between tokens, USDC (6 decimals) and oracle prices (8 decimals)
library PriceMath {
    uint256 internal constant BPS = 10_000;

    /// @dev An oracle price has two more decimals than a USDC amount.
    uint256 private constant USDC_TO_PRICE = 100;

    /// @dev From the 8 decimals of a price to 18.
    uint256 private constant MIN_PRICE_SCALE = 1e10;

    /// @dev A cent: no sale gives away a unit that is worth more.
    uint256 private constant MAX_LOST_UNIT = 10_000;

    /// @notice Returns what `tokens` are worth in USDC base units, rounded down
    function usdcValue(uint256 tokens, uint256 price, uint256 tokenDecimals) internal pure returns (uint256) {
        return tokens * price / (_unit(tokenDecimals) * USDC_TO_PRICE);
    }

    /// @notice Returns how many tokens `usdcAmount` buys at `price`, rounded down
    function tokensFor(uint256 usdcAmount, uint256 price, uint256 tokenDecimals) internal pure returns (uint256) {
        return usdcAmount * USDC_TO_PRICE * _unit(tokenDecimals) / price;
    }

    /// @notice Returns USDC base units per whole token, rounded down
    function entryPrice(uint256 usdcCost, uint256 tokens, uint256 tokenDecimals) internal pure returns (uint256) {
        return usdcCost * _unit(tokenDecimals) / tokens;
    }

    /// @notice Returns the part of `usdcCost` that a sale of `sold` of the `held` tokens releases
    /// @dev Rounding it up never overstates a profit, and the last sale releases what is left.
    function releasedCost(uint256 usdcCost, uint256 sold, uint256 held) internal pure returns (uint256) {
        return Math.ceilDiv(usdcCost * sold, held);
    }

    /// @notice Returns `bps` of an amount, rounded down
    function shareOf(uint256 amount, uint256 bps) internal pure returns (uint256) {
        return amount * bps / BPS;
    }

    /// @notice Returns `amount` less `slippageBps`, rounded down
    function lessBps(uint256 amount, uint256 slippageBps) internal pure returns (uint256) {
        return amount * (BPS - slippageBps) / BPS;
    }

    /// @notice Returns `price` less `slippageBps` with 18 decimals: in 8 the slippage of a very cheap token would be nothing
    function minPriceOf(uint256 price, uint256 slippageBps) internal pure returns (uint256) {
        return price * MIN_PRICE_SCALE * (BPS - slippageBps) / BPS;
    }

    /// @notice Returns the least USDC that a sale of `tokens` must bring, rounded down
    /// @dev A pool takes its fee in whole units of the token and rounds it up, so every amount may bring as much as one unit
    /// less would: of few units, or of an amount at the very limit, a sale could never be made otherwise.
    /// @param minPrice With 18 decimals
    function saleFloor(uint256 tokens, uint256 minPrice, uint256 tokenDecimals) internal pure returns (uint256) {
        uint256 scale = _unit(tokenDecimals) * USDC_TO_PRICE * MIN_PRICE_SCALE;
        bool isUnitSmall = minPrice <= MAX_LOST_UNIT * scale;
        return (tokens != 0 && isUnitSmall ? tokens - 1 : tokens) * minPrice / scale;
    }

    /// @notice Returns the value of `tokens` against what they cost, in bps
    /// @dev Exact for every price: nothing is rounded before the division. Rounding towards zero makes `<=` and `>=`
    /// against whole bps exact on both sides. What cost nothing has gained without limit.
    function pnlBps(uint256 tokens, uint256 price, uint256 usdcCost, uint256 tokenDecimals)
        internal
        pure
        returns (int256)
    {
        if (usdcCost == 0) return type(int24).max;
        uint256 value = tokens * price;
        uint256 cost = usdcCost * _unit(tokenDecimals) * USDC_TO_PRICE;
        return value >= cost ? _signed((value - cost) * BPS / cost) : -_signed((cost - value) * BPS / cost);
    }

    /// @dev One whole token. The token registry lists no token of more than 18 decimals, so that this cannot overflow.
    function _unit(uint256 tokenDecimals) private pure returns (uint256) {
        unchecked {
            return 10 ** tokenDecimals;
        }
    }

    /// @dev Prices are at most 128 bits wide, so the value is far below 2^255.
    function _signed(uint256 value) private pure returns (int256) {
        // forge-lint: disable-next-line(unsafe-typecast)
        return int256(value);
    }
}
