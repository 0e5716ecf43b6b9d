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
        assertEq(PriceMath.pnlBps(110e8, 100e6), 1_000);
        assertEq(PriceMath.pnlBps(90e8, 100e6), -1_000);
        assertEq(PriceMath.pnlBps(100e8, 100e6), 0);
        assertEq(PriceMath.pnlBps(10_001e4, 100e4), 0 + 1);
        assertEq(PriceMath.pnlBps(10_000e4 - 1, 100e4), 0);
        assertEq(PriceMath.pnlBps(0, 100e6), -10_000);
        assertEq(PriceMath.pnlBps(100e8, 0), 0);
    }

    /// @dev Comparing whole bps is the same as comparing the exact ratio.
    function testFuzz_WholeBpsCompareExactly(uint96 price, uint64 entry, int24 trigger) public pure {
        vm.assume(entry != 0 && trigger != 0);
        int256 pnl = PriceMath.pnlBps(price, entry);
        int256 exact = (int256(uint256(price)) - int256(uint256(entry)) * 100) * 10_000;
        int256 bound = int256(trigger) * int256(uint256(entry)) * 100;
        if (trigger < 0) assertEq(pnl <= trigger, exact <= bound);
        else assertEq(pnl >= trigger, exact >= bound);
    }

    function testFuzz_NoConversionCreatesValue(uint64 usdc, uint96 price, uint8 decimals) public pure {
        price = uint96(bound(price, 1, type(uint96).max));
        decimals = uint8(bound(decimals, 0, 18));
        uint256 tokens = PriceMath.tokensFor(usdc, price, decimals);
        vm.assume(tokens <= type(uint128).max);
        assertLe(PriceMath.usdcValue(tokens, price, decimals), usdc);
    }
}
