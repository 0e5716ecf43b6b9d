// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";
import {ISwapAdapter} from "../../src/interfaces/ISwapAdapter.sol";
import {IUniswapV3SwapAdapter} from "../../src/interfaces/IUniswapV3SwapAdapter.sol";
import {ProtocolTest} from "./ProtocolTest.sol";

interface IFactoryOwner {
    function enableFeeAmount(uint24 fee, int24 tickSpacing) external;
}

/// @notice A token with several pools trades in the one that brings the most, whatever its fee, price or place in the list
contract PoolsTest is ProtocolTest {
    uint24 private constant CHEAP = 100;
    uint24 private constant FIRST = 500;
    uint24 private constant SECOND = 3_000;
    uint24 private constant THIRD = 9_000;
    uint24 private constant ABSURD = 950_000;
    uint256 private constant PRICE = 100 * USD;

    StockToken private token;
    address private buyer = makeAddr("buyer");

    function setUp() public override {
        super.setUp();
        IFactoryOwner factory = IFactoryOwner(address(market.factory()));
        vm.startPrank(address(market));
        factory.enableFeeAmount(CHEAP, 1);
        factory.enableFeeAmount(THIRD, 60);
        factory.enableFeeAmount(ABSURD, 60);
        vm.stopPrank();
        token = _newToken("TIER", 18);
        _listWithDepth(token, PRICE, 20_000 * USDC);
        _addPool(SECOND, PRICE, 10_000_000 * USDC);
    }

    // Which pool

    function test_ASmallTradeTakesTheCheapPoolAndALargeOneTheDeep() public {
        _setOthers(SECOND, 0, 0);
        assertGt(_bought(FIRST, 10 * USDC), 0);
        assertGt(_bought(SECOND, 5_000 * USDC), 0);
    }

    function testFuzz_ATradeBringsWhatTheBestListedPoolWould(uint256 amount, uint8 order) public {
        amount = bound(amount, 1 * USDC, 15_000 * USDC);
        _addPool(THIRD, PRICE * 99 / 100, 1_000_000 * USDC);
        uint256 best;
        uint24[3] memory fees = [FIRST, SECOND, THIRD];
        for (uint256 i; i < 3; ++i) {
            vm.prank(admin);
            adapter.setPool(address(token), fees[i]);
            vm.prank(address(router));
            uint256 alone = adapter.quoteUsdcForToken(address(token), amount);
            if (alone > best) best = alone;
        }
        vm.prank(admin);
        adapter.setPool(address(token), fees[order % 3]);
        _setOthers(fees[(uint256(order) + 1) % 3], 0, fees[(uint256(order) + 2) % 3]);
        vm.prank(address(router));
        assertEq(adapter.quoteUsdcForToken(address(token), amount), best);
        uint256 bought = _buy(amount);
        assertEq(bought, best);

        vm.prank(address(router));
        (uint256 sold, uint256 usdcOut) = adapter.quoteTokenForUsdc(address(token), bought, 0);
        assertEq(sold, bought);
        assertEq(_sell(bought, 0), usdcOut);
    }

    function test_NoPoolIsUsedThatTheListDoesNotName() public {
        _addPool(CHEAP, PRICE, 50_000_000 * USDC);
        _setOthers(SECOND, 0, 0);
        uint256 before = usdc.balanceOf(_poolOf(CHEAP));
        _buy(5_000 * USDC);
        assertEq(usdc.balanceOf(_poolOf(CHEAP)), before);
    }

    function test_AnEmptyPoolAtAnAbsurdPriceAndAFeeOf95PercentWinNothing() public {
        _addPool(THIRD, 1e9 * USD, 0);
        _addPool(ABSURD, PRICE, 10_000_000 * USDC);
        _setOthers(THIRD, ABSURD, SECOND);
        uint256 bought = _bought(SECOND, 5_000 * USDC);
        assertApproxEqRel(bought, 50e18, 0.005e18);
        assertApproxEqRel(_sell(bought, 0), 5_000 * USDC, 0.01e18);

        vm.startPrank(admin);
        adapter.setPool(address(token), THIRD);
        adapter.setOtherPools(address(token), [ABSURD, SECOND, FIRST]);
        vm.stopPrank();
        assertApproxEqRel(_bought(SECOND, 5_000 * USDC), 50e18, 0.005e18);
    }

    function test_APoolThatIsEmptyForHundredsOfWordsCostsABoundedAmountOfGas() public {
        _addPool(CHEAP, PRICE / 1e6, 0);
        _setOthers(CHEAP, 0, SECOND);
        uint256 before = gasleft();
        _bought(SECOND, 5_000 * USDC);
        assertLt(before - gasleft(), 1_200_000);
    }

    function test_ALimitedSaleTakesThePoolThatBringsMoreWithinTheLimit() public {
        _setOthers(SECOND, 0, 0);
        uint256 amount = 100e18;
        vm.prank(admin);
        token.mint(buyer, amount);
        uint256 before = usdc.balanceOf(_poolOf(SECOND));
        uint256 usdcOut = _sell(amount, PRICE * 1e10 * 99 / 100);
        assertEq(usdc.balanceOf(_poolOf(SECOND)), before - usdcOut);
        assertEq(token.balanceOf(buyer), 0);
    }

    function test_TooLittleGasNeverChoosesAWorsePool() public {
        _addPool(CHEAP, PRICE / 1e6, 0);
        _setOthers(CHEAP, SECOND, 0);
        vm.startPrank(address(router));
        uint256 best = adapter.quoteUsdcForToken(address(token), 5_000 * USDC);
        for (uint256 gas = 100_000; gas < 1_500_000; gas += 25_000) {
            try adapter.quoteUsdcForToken{gas: gas}(address(token), 5_000 * USDC) returns (uint256 tokens) {
                assertEq(tokens, best);
            } catch {}
        }
    }

    function test_WhereNoPoolFillsTheFirstSaysSo() public {
        _setOthers(SECOND, 0, 0);
        vm.prank(address(router));
        vm.expectPartialRevert(IUniswapV3SwapAdapter.PartialFill.selector);
        adapter.quoteUsdcForToken(address(token), type(uint128).max);
    }

    function test_APoolThatTheIssuerBlocksIsPassedOver() public {
        _setOthers(SECOND, 0, 0);
        uint256 bought = _bought(SECOND, 1_000 * USDC);
        vm.mockCallRevert(address(token), abi.encodeWithSelector(token.transfer.selector, _poolOf(SECOND)), "blocked");
        uint256 before = usdc.balanceOf(_poolOf(FIRST));
        uint256 usdcOut = _sell(bought, 0);
        assertEq(usdc.balanceOf(_poolOf(FIRST)), before - usdcOut);
        assertGt(usdcOut, 0);
    }

    // What the contracts check, whatever the pool

    function test_TheFloorHoldsInTheBestPoolToo() public {
        market.moveTo(address(token), PRICE);
        _addPool(THIRD, PRICE * 110 / 100, 10_000_000 * USDC);
        vm.prank(admin);
        adapter.setPool(address(token), THIRD);
        uint256 atOracle = 10e18;
        vm.prank(address(router));
        uint256 fill = adapter.quoteUsdcForToken(address(token), 1_000 * USDC);
        assertLt(fill, atOracle * 93 / 100);
        uint256 minimum = atOracle * 99 / 100;
        vm.prank(admin);
        usdc.mint(address(adapter), 1_000 * USDC);
        vm.prank(address(router));
        vm.expectRevert(abi.encodeWithSelector(ISwapAdapter.SlippageExceeded.selector, minimum, fill));
        adapter.swapUsdcForToken(buyer, address(token), 1_000 * USDC, minimum);
    }

    function test_TheFeeIsThatOfThePoolThatTraded() public {
        _setOthers(SECOND, 0, 0);
        assertEq(adapter.poolFeeOf(address(token)), FIRST);
        _buy(5_000 * USDC);
        assertEq(adapter.poolFeeOf(address(token)), SECOND);
        _buy(10 * USDC);
        assertEq(adapter.poolFeeOf(address(token)), FIRST);
        assertEq(adapter.poolFeeOf(address(nvda)), market.FEE());
    }

    function test_PricesAreThoseOfTheFirstPool() public {
        _addPool(THIRD, 2 * PRICE, 10_000_000 * USDC);
        _setOthers(THIRD, 0, 0);
        (uint256 spot,) = adapter.pricesOf(address(token), 0);
        assertApproxEqAbs(spot, PRICE, 2);
    }

    // The list

    function test_OnlyTheAdminListsPools() public {
        vm.expectRevert(
            abi.encodeWithSelector(
                IAccessControl.AccessControlUnauthorizedAccount.selector, address(this), adapter.DEFAULT_ADMIN_ROLE()
            )
        );
        adapter.setOtherPools(address(token), [SECOND, 0, 0]);
    }

    function test_AListReplacesTheOneBefore() public {
        _addPool(THIRD, PRICE, 1_000 * USDC);
        vm.expectEmit(address(adapter));
        emit IUniswapV3SwapAdapter.OtherPoolsUpdated(address(token), [uint24(0), SECOND, THIRD]);
        _setOthers(0, SECOND, THIRD);
        _listed([FIRST, SECOND, THIRD, 0]);
        _setOthers(THIRD, 0, 0);
        _listed([FIRST, THIRD, 0, 0]);
        vm.prank(admin);
        adapter.setPool(address(token), SECOND);
        _listed([SECOND, 0, 0, 0]);
        _listed(address(0xdead), [uint24(0), 0, 0, 0]);
    }

    function test_RefusesAPoolThatDoesNotExist() public {
        vm.prank(admin);
        vm.expectRevert(abi.encodeWithSelector(IUniswapV3SwapAdapter.PoolNotFound.selector, address(token), THIRD));
        adapter.setOtherPools(address(token), [SECOND, THIRD, 0]);
    }

    function _listed(uint24[4] memory expected) private view {
        _listed(address(token), expected);
    }

    function _listed(address of_, uint24[4] memory expected) private view {
        uint24[4] memory fees = adapter.poolFeesOf(of_);
        for (uint256 i; i < 4; ++i) {
            assertEq(fees[i], expected[i]);
        }
    }

    function _setOthers(uint24 a, uint24 b, uint24 c) private {
        vm.prank(admin);
        adapter.setOtherPools(address(token), [a, b, c]);
    }

    function _addPool(uint24 fee, uint256 price, uint256 depth) private {
        uint24 before = market.feeOf(address(token));
        market.setFee(address(token), fee);
        market.createPool(address(token), price, depth);
        market.setFee(address(token), before);
    }

    function _poolOf(uint24 fee) private view returns (address) {
        return market.factory().getPool(address(usdc), address(token), fee);
    }

    /// @dev Buys, and checks that the pool of this fee got the dollars.
    function _bought(uint24 fee, uint256 amount) private returns (uint256 bought) {
        uint256 before = usdc.balanceOf(_poolOf(fee));
        bought = _buy(amount);
        assertEq(usdc.balanceOf(_poolOf(fee)), before + amount);
    }

    function _buy(uint256 amount) private returns (uint256) {
        vm.prank(admin);
        usdc.mint(address(adapter), amount);
        vm.prank(address(router));
        return adapter.swapUsdcForToken(buyer, address(token), amount, 0);
    }

    /// @param minPrice 0 = all of it
    function _sell(uint256 amount, uint256 minPrice) private returns (uint256 usdcOut) {
        vm.prank(buyer);
        token.transfer(address(adapter), amount);
        vm.prank(address(router));
        if (minPrice == 0) return adapter.swapTokenForUsdc(buyer, address(token), amount, 0);
        (, usdcOut) = adapter.sellTokenUpTo(buyer, address(token), amount, minPrice);
    }
}
