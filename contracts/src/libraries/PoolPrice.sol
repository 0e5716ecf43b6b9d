// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SignedMath} from "@openzeppelin/contracts/utils/math/SignedMath.sol";
import {IUniswapV3Pool} from "../interfaces/IUniswapV3.sol";

/// @title Prices of a Uniswap v3 pool in USD per whole token with 8 decimals
/// @notice The pool trades a token against USDC (6 decimals), which counts as one USD.
library PoolPrice {
    /// @dev A pool's state that the average needs.
    struct Pool {
        IUniswapV3Pool at;
        int24 tick;
        uint16 index;
        uint16 cardinality;
    }

    /// @dev The ends of Uniswap v3's price range: only the liquidity limits a swap to them.
    uint160 internal constant LOWEST_SQRT_PRICE = 4_295_128_740;
    uint160 internal constant HIGHEST_SQRT_PRICE = 1_461_446_703_485_210_103_287_273_052_203_988_822_378_723_970_341;

    /// @dev How many observations before the newest one are looked at before the pool searches.
    uint256 private constant PROBES = 3;

    uint256 private constant Q96 = 1 << 96;
    uint256 private constant Q64 = 1 << 64;

    /// @dev 1.0001 as a fraction of 2^64.
    uint256 private constant TICK_BASE = 18_448_588_748_116_922_571;

    /// @dev A factor of a million: an average further away is clamped to it.
    uint256 private constant MAX_TICKS = 138_162;

    /// @dev Fees are in millionths.
    uint256 private constant FEE_UNIT = 1_000_000;

    /// @dev An 8-decimal price has two more decimals than a USDC amount.
    uint256 private constant USDC_TO_PRICE = 100;

    /// @notice Returns the pool's price, and its geometric average over `window` seconds
    /// @dev Where the pool's history is shorter than the window, it averages over the history. The average is the spot
    /// price moved by the distance of the two ticks, so it is exact to one tick (0.01 %).
    /// @return spotPrice The price before the next swap
    /// @return twapPrice 0 when there is no history or `window` is 0
    function pricesOf(IUniswapV3Pool pool, bool usdcIsToken0, uint256 decimals, uint32 window)
        internal
        view
        returns (uint256 spotPrice, uint256 twapPrice)
    {
        Pool memory state;
        uint160 sqrtPrice;
        state.at = pool;
        (sqrtPrice, state.tick, state.index, state.cardinality) = pool.slot0();
        spotPrice = _priceAt(sqrtPrice, usdcIsToken0, decimals);
        if (window == 0) return (spotPrice, 0);
        (bool isKnown, int256 averageTick) = _averageTick(state, window);
        if (!isKnown) return (spotPrice, 0);
        // A pool's price is token1 per token0.
        int256 move = usdcIsToken0 ? state.tick - averageTick : averageTick - state.tick;
        twapPrice = _movedBy(spotPrice, move);
    }

    /// @notice Returns the pool price beyond which a sale of the token brings less than `minPrice` per unit, fees deducted
    /// @dev Rounded towards a smaller sale, and within the range of prices.
    /// @param minPrice With 18 decimals
    function sqrtPriceLimit(uint256 minPrice, uint256 fee, bool usdcIsToken0, uint256 decimals)
        internal
        pure
        returns (uint160)
    {
        uint256 grossPrice = Math.ceilDiv(minPrice * FEE_UNIT, FEE_UNIT - fee);
        // In base units: `tokens` of the token are worth `grossPrice` of USDC.
        uint256 tokens = 1e12 * 10 ** decimals;
        uint256 ratio = usdcIsToken0
            ? Math.mulDiv(tokens, 1 << 128, grossPrice)
            : Math.mulDiv(grossPrice, 1 << 128, tokens, Math.Rounding.Ceil);
        uint256 root = usdcIsToken0 ? Math.sqrt(ratio) : Math.sqrt(ratio, Math.Rounding.Ceil);
        // The root has 64 fractional bits, a pool's price 96.
        uint256 limit = Math.min(Math.max(root << 32, LOWEST_SQRT_PRICE), HIGHEST_SQRT_PRICE);
        // forge-lint: disable-next-line(unsafe-typecast)
        return uint160(limit);
    }

    /// @notice Returns what a swap brings without price impact, rounded up: it never brings more
    function mostFor(address pool, bool zeroForOne, uint256 amountIn, uint256 fee) internal view returns (uint256) {
        (uint256 root,,,) = IUniswapV3Pool(pool).slot0();
        (uint256 up, uint256 down) = zeroForOne ? (root, Q96) : (Q96, root);
        uint256 half = Math.mulDiv(amountIn, up, down, Math.Rounding.Ceil);
        return Math.mulDiv(half, up, down, Math.Rounding.Ceil) * (FEE_UNIT - fee) / FEE_UNIT;
    }

    /// @dev Returns the arithmetic mean of the ticks, rounded down.
    function _averageTick(Pool memory pool, uint32 window) private view returns (bool isKnown, int256 tick) {
        // The newest observations often reach back far enough, and then the pool need not search its history.
        (uint32 latest, int56 cumulative,,) = pool.at.observations(pool.index);
        uint32 age = _secondsSince(latest);
        if (age >= window) return (true, pool.tick);
        (isKnown, tick) = _averageOfNewest(pool, window, age, cumulative);
        if (isKnown) return (true, tick);
        uint32[] memory ago = new uint32[](2);
        ago[0] = window;
        try pool.at.observe(ago) returns (int56[] memory cumulatives, uint160[] memory) {
            return (true, _mean(int256(cumulatives[1]) - cumulatives[0], window));
        } catch {
            window = _historyOf(pool);
            if (window == 0) return (false, 0);
            ago[0] = window;
            (int56[] memory cumulatives,) = pool.at.observe(ago);
            return (true, _mean(int256(cumulatives[1]) - cumulatives[0], window));
        }
    }

    /// @dev Known when the window begins after one of the few observations before the newest one: between two neighbours the
    /// tick was the same all the time.
    /// @param age Of the newest observation, in seconds
    /// @param cumulative Of the newest observation
    function _averageOfNewest(Pool memory pool, uint32 window, uint32 age, int56 cumulative)
        private
        view
        returns (bool isKnown, int256 tick)
    {
        // Ticks times seconds fit in 56 bits, so nothing overflows in 256.
        unchecked {
            // The cumulative tick now, from which that of the window's beginning is subtracted.
            int256 sum = int256(cumulative) + int256(pool.tick) * int256(uint256(age));
            for (uint256 back = 1; back <= PROBES && back < pool.cardinality; ++back) {
                (uint32 time, int56 before,, bool isInitialized) =
                    pool.at.observations((uint256(pool.index) + pool.cardinality - back) % pool.cardinality);
                if (!isInitialized) return (false, 0);
                uint32 olderAge = _secondsSince(time);
                if (olderAge >= window) {
                    int256 between = (int256(cumulative) - before) / int256(uint256(olderAge - age));
                    sum -= before + between * int256(uint256(olderAge - window));
                    return (true, _mean(sum, window));
                }
                (age, cumulative) = (olderAge, before);
            }
        }
    }

    function _historyOf(Pool memory pool) private view returns (uint32) {
        if (pool.cardinality < 2) return 0;
        (uint32 oldest,,, bool isInitialized) = pool.at.observations((uint256(pool.index) + 1) % pool.cardinality);
        if (!isInitialized) (oldest,,,) = pool.at.observations(0);
        return _secondsSince(oldest);
    }

    /// @dev Timestamps of observations have 32 bits and wrap.
    function _secondsSince(uint32 time) private view returns (uint32) {
        unchecked {
            // forge-lint: disable-next-line(unsafe-typecast)
            return uint32(block.timestamp) - time;
        }
    }

    function _mean(int256 sum, uint32 window) private pure returns (int256 tick) {
        int256 span = int256(uint256(window));
        tick = sum / span;
        if (sum < 0 && sum % span != 0) --tick;
    }

    function _priceAt(uint160 sqrtPrice, bool usdcIsToken0, uint256 decimals) private pure returns (uint256) {
        uint256 tokens = USDC_TO_PRICE * 10 ** decimals;
        return usdcIsToken0
            ? Math.mulDiv(Math.mulDiv(tokens, Q96, sqrtPrice), Q96, sqrtPrice)
            : Math.mulDiv(Math.mulDiv(tokens, sqrtPrice, Q96), sqrtPrice, Q96);
    }

    /// @dev `price * 1.0001^ticks`
    function _movedBy(uint256 price, int256 ticks) private pure returns (uint256) {
        if (ticks == 0) return price;
        uint256 left = Math.min(SignedMath.abs(ticks), MAX_TICKS);
        uint256 factor = Q64;
        uint256 power = TICK_BASE;
        // `MAX_TICKS` keeps the factor below 2^84 and the last power below 2^102.
        unchecked {
            while (left != 0) {
                if (left & 1 != 0) factor = factor * power / Q64;
                power = power * power / Q64;
                left >>= 1;
            }
        }
        return ticks < 0 ? Math.mulDiv(price, Q64, factor) : Math.mulDiv(price, factor, Q64);
    }
}
