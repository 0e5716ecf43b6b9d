// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {UniswapV3SwapAdapter} from "../../src/adapters/UniswapV3SwapAdapter.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";
import {ISwapAdapter} from "../../src/interfaces/ISwapAdapter.sol";
import {IUniswapV3Pool} from "../../src/interfaces/IUniswapV3.sol";
import {IUniswapV3SwapAdapter} from "../../src/interfaces/IUniswapV3SwapAdapter.sol";
import {ProtocolTest} from "./ProtocolTest.sol";

contract UniswapV3SwapAdapterTest is ProtocolTest {
    address private buyer = makeAddr("buyer");

    function test_TellsWhatItIsWiredTo() public view {
        assertEq(adapter.tradeRouter(), address(router));
        assertEq(adapter.factory(), address(market.factory()));
        assertEq(adapter.usdc(), address(usdc));
        assertEq(adapter.poolOf(address(nvda)), address(market.poolOf(address(nvda))));
        assertEq(adapter.poolFeeOf(address(nvda)), market.FEE());
    }

    /// @dev A call of its own: a creation that reverts after `expectRevert` would end the whole test as passed.
    function deploy(address[4] calldata wired) external {
        new UniswapV3SwapAdapter(wired[0], wired[1], wired[2], wired[3]);
    }

    function test_RefusesToBeWiredToNothing() public {
        address[4] memory parts = [admin, address(router), adapter.factory(), address(usdc)];
        for (uint256 i; i < parts.length; ++i) {
            address part = parts[i];
            parts[i] = address(0);
            vm.expectRevert(IUniswapV3SwapAdapter.ZeroAddress.selector);
            this.deploy(parts);
            parts[i] = part;
        }
    }

    function test_OnlyTheAdminSetsPools() public {
        bytes memory refusal = abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, address(this), adapter.DEFAULT_ADMIN_ROLE()
        );
        vm.expectRevert(refusal);
        adapter.setPool(address(nvda), 500);
    }

    function test_AnotherFeeTierIsAnotherPool() public {
        address pool = market.factory().createPool(address(usdc), address(nvda), 3_000);
        vm.startPrank(admin);
        vm.expectRevert(abi.encodeWithSelector(IUniswapV3SwapAdapter.PoolNotFound.selector, address(nvda), 3_000));
        adapter.setPool(address(nvda), 3_000);

        _initialize(pool);
        vm.expectEmit(address(adapter));
        emit IUniswapV3SwapAdapter.PoolUpdated(address(nvda), pool, 3_000);
        adapter.setPool(address(nvda), 3_000);
        assertEq(adapter.poolOf(address(nvda)), pool);
        assertEq(adapter.poolFeeOf(address(nvda)), 3_000);
    }

    function test_RefusesAPoolThatDoesNotExist() public {
        vm.startPrank(admin);
        vm.expectRevert(abi.encodeWithSelector(IUniswapV3SwapAdapter.PoolNotFound.selector, address(nvda), 10_000));
        adapter.setPool(address(nvda), 10_000);
        vm.expectRevert(IUniswapV3SwapAdapter.ZeroAddress.selector);
        adapter.setPool(address(0), 500);
    }

    function test_OnlyTheRouterSwaps() public {
        vm.expectRevert(abi.encodeWithSelector(IUniswapV3SwapAdapter.OnlyTradeRouter.selector, address(this)));
        adapter.swapUsdcForToken(buyer, address(nvda), 1, 0);
        vm.expectRevert(abi.encodeWithSelector(IUniswapV3SwapAdapter.OnlyTradeRouter.selector, address(this)));
        adapter.swapTokenForUsdc(buyer, address(nvda), 1, 0);
        vm.expectRevert(abi.encodeWithSelector(IUniswapV3SwapAdapter.OnlyTradeRouter.selector, address(this)));
        adapter.sellTokenUpTo(buyer, address(nvda), 1, 1);
        vm.expectRevert(abi.encodeWithSelector(IUniswapV3SwapAdapter.OnlyTradeRouter.selector, address(this)));
        adapter.quoteUsdcForToken(address(nvda), 1);
        vm.expectRevert(abi.encodeWithSelector(IUniswapV3SwapAdapter.OnlyTradeRouter.selector, address(this)));
        adapter.quoteTokenForUsdc(address(nvda), 1, 1);
        vm.expectRevert(abi.encodeWithSelector(IUniswapV3SwapAdapter.OnlySelf.selector, address(this)));
        UniswapV3SwapAdapter.Order memory order;
        adapter.swapForQuote(order);
    }

    // Limited sales

    function test_SellsNoUnitBelowTheLimitAndReturnsTheRest() public {
        _sellsUpTo(nvda, NVDA_PRICE, 18);
        _sellsUpTo(tsla, TSLA_PRICE, 8);
    }

    function test_SellsNothingBeyondTheLimit() public {
        vm.prank(admin);
        nvda.mint(address(adapter), 1e18);
        vm.prank(address(router));
        (uint256 sold, uint256 usdcOut) = adapter.sellTokenUpTo(buyer, address(nvda), 1e18, NVDA_PRICE * 1e10);
        assertEq(sold, 0);
        assertEq(usdcOut, 0);
        assertEq(nvda.balanceOf(buyer), 1e18);
    }

    function test_SellsAllWithinTheLimit() public {
        vm.prank(admin);
        nvda.mint(address(adapter), 10e18);
        vm.prank(address(router));
        (uint256 sold,) = adapter.sellTokenUpTo(buyer, address(nvda), 10e18, NVDA_PRICE * 1e10 * 99 / 100);
        assertEq(sold, 10e18);
        assertEq(nvda.balanceOf(buyer), 0);
    }

    function testFuzz_ALimitedSaleBringsTheLimitOrMore(uint256 amount, uint256 limitBps) public {
        amount = bound(amount, 1e12, 10_000_000e18);
        uint256 minPrice = NVDA_PRICE * 1e10 * bound(limitBps, 5_000, 9_999) / 10_000;
        vm.prank(admin);
        nvda.mint(address(adapter), amount);
        vm.prank(address(router));
        (uint256 sold, uint256 usdcOut) = adapter.sellTokenUpTo(buyer, address(nvda), amount, minPrice);
        assertGe(usdcOut + 1, sold * minPrice / 1e30);
        assertEq(nvda.balanceOf(buyer), amount - sold);
        assertEq(usdc.balanceOf(buyer), usdcOut);
    }

    // Quotes

    function testFuzz_AQuoteIsTheFillAndMovesNothing(uint256 amount) public {
        amount = bound(amount, 1, 10_000_000 * USDC);
        vm.prank(address(router));
        uint256 quoted = adapter.quoteUsdcForToken(address(nvda), amount);
        assertEq(_buy(amount, 0), quoted);
        if (quoted == 0) return;

        vm.prank(address(router));
        (uint256 sold, uint256 usdcOut) = adapter.quoteTokenForUsdc(address(nvda), quoted, 0);
        assertEq(sold, quoted);
        vm.prank(buyer);
        nvda.transfer(address(adapter), quoted);
        vm.prank(address(router));
        assertEq(adapter.swapTokenForUsdc(buyer, address(nvda), quoted, 0), usdcOut);
    }

    function test_AQuoteBeyondTheLiquidityIsPartial() public {
        market.drain(address(tsla));
        market.addLiquidity(address(tsla), TSLA_PRICE, 1_000 * USDC);
        vm.startPrank(address(router));
        (uint256 sold,) = adapter.quoteTokenForUsdc(address(tsla), 1e12, TSLA_PRICE * 1e10 / 2);
        assertGt(sold, 0);
        assertLt(sold, 1e12);
        vm.expectPartialRevert(IUniswapV3SwapAdapter.PartialFill.selector);
        adapter.quoteUsdcForToken(address(tsla), type(uint128).max);
    }

    // Prices

    function test_TellsThePriceOfThePool() public {
        (uint256 spot, uint256 twap) = adapter.pricesOf(address(nvda), 0);
        assertApproxEqAbs(spot, NVDA_PRICE, 2);
        assertEq(twap, 0);
        (spot,) = adapter.pricesOf(address(tsla), 0);
        assertApproxEqAbs(spot, TSLA_PRICE, 2);
        market.moveTo(address(nvda), 123 * USD);
        (spot,) = adapter.pricesOf(address(nvda), 0);
        assertApproxEqRel(spot, 123 * USD, 1e9);
    }

    function test_TheAverageFollowsThePoolOverTheWindow() public {
        skip(5 minutes);
        _averageIs(nvda, NVDA_PRICE);
        market.moveTo(address(nvda), 121 * USD);
        _averageIs(nvda, NVDA_PRICE);
        skip(150);
        _averageIs(nvda, 110 * USD);
        skip(150);
        _averageIs(nvda, 121 * USD);
    }

    /// @dev The same as the pool's own search through its history, however often it traded in the window.
    function testFuzz_TheAverageIsThatOfThePool(uint8[12] memory gaps, uint16[12] memory moves, uint8 used) public {
        skip(10 minutes);
        for (uint256 i; i < used % 13; ++i) {
            skip(gaps[i]);
            market.moveTo(address(nvda), NVDA_PRICE * (9_000 + moves[i] % 2_000) / 10_000);
        }
        skip(gaps[0]);
        uint32[] memory ago = new uint32[](2);
        ago[0] = 5 minutes;
        IUniswapV3Pool pool = IUniswapV3Pool(adapter.poolOf(address(nvda)));
        (int56[] memory cumulatives,) = pool.observe(ago);
        int256 average = (cumulatives[1] - cumulatives[0]) / 300;
        (, int24 tick,,) = pool.slot0();
        (uint256 spot, uint256 twap) = adapter.pricesOf(address(nvda), 5 minutes);
        int256 away = address(usdc) < address(nvda) ? tick - average : average - tick;
        uint256 expected = spot;
        for (int256 i; i < away; ++i) {
            expected = expected * 10_001 / 10_000;
        }
        for (int256 i; i > away; --i) {
            expected = expected * 10_000 / 10_001;
        }
        assertApproxEqRel(twap, expected, 2e14);
    }

    function test_TheAverageOfAYoungPoolIsOverItsHistory() public {
        StockToken young = _newToken("YNG", 18);
        _list(young, 10 * USD);
        (, uint256 twap) = adapter.pricesOf(address(young), 5 minutes);
        assertEq(twap, 0);
        skip(1);
        market.moveTo(address(young), 20 * USD);
        _averageIs(young, 10 * USD);
        skip(1);
        _averageIs(young, 14.14213562 * 1e8);
        skip(5 minutes);
        _averageIs(young, 20 * USD);
    }

    function test_OnlyThePoolOfARunningSwapCallsBack() public {
        address pool = address(market.poolOf(address(nvda)));
        vm.prank(admin);
        usdc.mint(address(adapter), 100 * USDC);
        vm.prank(pool);
        vm.expectRevert(abi.encodeWithSelector(IUniswapV3SwapAdapter.OnlyActivePool.selector, pool));
        adapter.uniswapV3SwapCallback(1, -1, "");
    }

    function test_BuysAndSellsForTheVaultNamed() public {
        uint256 bought = _buy(1_000 * USDC, 0);
        assertEq(nvda.balanceOf(buyer), bought);
        assertEq(usdc.balanceOf(address(adapter)), 0);

        vm.prank(buyer);
        nvda.transfer(address(adapter), bought);
        vm.prank(address(router));
        uint256 usdcOut = adapter.swapTokenForUsdc(buyer, address(nvda), bought, 0);
        assertEq(usdc.balanceOf(buyer), usdcOut);
        assertEq(nvda.balanceOf(address(adapter)), 0);
        assertApproxEqRel(usdcOut, 1_000 * USDC, 0.002e18);
    }

    function test_HoldsTheMinimumToTheUnit() public {
        uint256 snapshot = vm.snapshotState();
        uint256 fill = _buy(1_000 * USDC, 0);
        vm.revertToState(snapshot);

        vm.prank(admin);
        usdc.mint(address(adapter), 1_000 * USDC);
        vm.startPrank(address(router));
        vm.expectRevert(abi.encodeWithSelector(ISwapAdapter.SlippageExceeded.selector, fill + 1, fill));
        adapter.swapUsdcForToken(buyer, address(nvda), 1_000 * USDC, fill + 1);
        assertEq(adapter.swapUsdcForToken(buyer, address(nvda), 1_000 * USDC, fill), fill);
    }

    function test_RefusesATokenWithoutAPool() public {
        StockToken poolless = new StockToken("Poolless", "PLS", 18, admin);
        vm.startPrank(address(router));
        vm.expectRevert(abi.encodeWithSelector(IUniswapV3SwapAdapter.PoolNotConfigured.selector, address(poolless)));
        adapter.swapTokenForUsdc(buyer, address(poolless), 1, 0);
    }

    function test_NamesAPartialFill() public {
        market.drain(address(tsla));
        market.addLiquidity(address(tsla), TSLA_PRICE, 1_000 * USDC);
        uint256 amount = type(uint128).max;
        vm.prank(admin);
        tsla.mint(address(adapter), amount);
        vm.prank(address(router));
        vm.expectPartialRevert(IUniswapV3SwapAdapter.PartialFill.selector);
        adapter.swapTokenForUsdc(buyer, address(tsla), amount, 0);
    }

    function testFuzz_SpendsAllThatItWasGivenAndKeepsNothing(uint256 amount) public {
        amount = bound(amount, 1, 10_000_000 * USDC);
        uint256 bought = _buy(amount, 0);
        assertEq(usdc.balanceOf(address(adapter)), 0);
        assertEq(nvda.balanceOf(address(adapter)), 0);
        assertEq(nvda.balanceOf(buyer), bought);
    }

    function _sellsUpTo(StockToken token, uint256 price, uint256 decimals) private {
        uint256 amount = 10_000_000 * 10 ** decimals;
        uint256 minPrice = price * 1e10 * 99 / 100;
        vm.prank(admin);
        token.mint(address(adapter), amount);
        vm.prank(address(router));
        (uint256 sold, uint256 usdcOut) = adapter.sellTokenUpTo(buyer, address(token), amount, minPrice);
        assertGt(sold, 0);
        assertLt(sold, amount);
        assertEq(token.balanceOf(buyer), amount - sold);
        assertEq(token.balanceOf(address(adapter)), 0);
        assertGe(usdcOut, sold * minPrice / (1e12 * 10 ** decimals));
        // The last unit brought the limit: after the fee the pool stands at it.
        (uint256 spot,) = adapter.pricesOf(address(token), 0);
        assertApproxEqRel(spot * (1_000_000 - market.FEE()) / 1_000_000, minPrice / 1e10, 1e10);
    }

    function _averageIs(StockToken token, uint256 price) private view {
        (, uint256 twap) = adapter.pricesOf(address(token), 5 minutes);
        assertApproxEqRel(twap, price, 2e14);
    }

    function _buy(uint256 amount, uint256 minimum) private returns (uint256) {
        vm.prank(admin);
        usdc.mint(address(adapter), amount);
        vm.prank(address(router));
        return adapter.swapUsdcForToken(buyer, address(nvda), amount, minimum);
    }

    function _initialize(address pool) private {
        (bool success,) =
            pool.call(abi.encodeWithSignature("initialize(uint160)", market.sqrtPriceOf(address(nvda), NVDA_PRICE)));
        assertTrue(success);
    }
}
