// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Test} from "forge-std/Test.sol";
import {PriceMath} from "../../src/libraries/PriceMath.sol";

contract PriceMathTest is Test {
    function test_ConvertsBetweenTokensAndUsdc() public pure {
        assertEq(PriceMath.usdcValue(2e18, 150e8, 18), 300e6);
        assertEq(PriceMath.usdcValue(2e8, 150e8, 8), 300e6);
        assertEq(PriceMath.usdcValue(3, 150e8, 0), 450e6);
        assertEq(PriceMath.tokensFor(300e6, 150e8, 18), 2e18);
        assertEq(PriceMath.tokensFor(300e6, 150e8, 0), 2);
        assertEq(PriceMath.entryPrice(300e6, 2e18, 18), 150e6);
        assertEq(PriceMath.lessBps(10_001, 100), 9_900);
        assertEq(PriceMath.lessBps(10_001, 10_000), 0);
    }

    function test_CountsPnlTowardsZero() public pure {
        assertEq(PriceMath.pnlBps(1e18, 110e8, 100e6, 18), 1_000);
        assertEq(PriceMath.pnlBps(1e18, 90e8, 100e6, 18), -1_000);
        assertEq(PriceMath.pnlBps(1e8, 100e8, 100e6, 8), 0);
        assertEq(PriceMath.pnlBps(1e8, 10_001e4, 100e4, 8), 1);
        assertEq(PriceMath.pnlBps(1e8, 10_000e4 - 1, 100e4, 8), 0);
        assertEq(PriceMath.pnlBps(1e18, 0, 100e6, 18), -10_000);
    }

    function test_WhatCostNothingHasGainedWithoutLimit() public pure {
        assertEq(PriceMath.pnlBps(1e18, 1, 0, 18), type(int24).max);
    }

    /// @dev Comparing whole bps is the same as comparing the exact ratio.
    function testFuzz_WholeBpsCompareExactly(uint128 tokens, uint96 price, uint64 cost, uint8 decimals, int24 trigger)
        public
        pure
    {
        vm.assume(cost != 0 && trigger != 0);
        decimals = uint8(bound(decimals, 0, 18));
        int256 pnl = PriceMath.pnlBps(tokens, price, cost, decimals);
        int256 unit = int256(uint256(cost) * 10 ** decimals * 100);
        int256 exact = (int256(uint256(tokens) * price) - unit) * 10_000;
        int256 bound = int256(trigger) * unit;
        if (trigger < 0) assertEq(pnl <= trigger, exact <= bound);
        else assertEq(pnl >= trigger, exact >= bound);
    }

    /// @dev The same rule for every amount, dust or not, unless a unit is worth more than a cent.
    function testFuzz_Skin10_OneUnitIsForgivenOfEveryAmount(uint64 tokens, uint64 price, uint8 decimals) public pure {
        vm.assume(tokens != 0);
        decimals = uint8(bound(decimals, 0, 18));
        uint256 minPrice = PriceMath.minPriceOf(price, 300);
        uint256 scale = 10 ** (12 + uint256(decimals));
        uint256 whole = tokens * minPrice / scale;
        uint256 floor = PriceMath.saleFloor(tokens, minPrice, decimals);
        if (minPrice > 10_000 * scale) assertEq(floor, whole);
        else assertEq(floor, (tokens - 1) * minPrice / scale);
        assertLe(whole - floor, 10_001);
        assertEq(PriceMath.saleFloor(0, minPrice, decimals), 0);
    }

    function testFuzz_NoConversionCreatesValue(uint64 usdc, uint96 price, uint8 decimals) public pure {
        price = uint96(bound(price, 1, type(uint96).max));
        decimals = uint8(bound(decimals, 0, 18));
        uint256 tokens = PriceMath.tokensFor(usdc, price, decimals);
        vm.assume(tokens <= type(uint128).max);
        assertLe(PriceMath.usdcValue(tokens, price, decimals), usdc);
    }
}
