// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {UniswapV3SwapAdapter} from "../../src/adapters/UniswapV3SwapAdapter.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";
import {ISwapAdapter} from "../../src/interfaces/ISwapAdapter.sol";
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
            address[4] memory wired = parts;
            wired[i] = address(0);
            vm.expectRevert(IUniswapV3SwapAdapter.ZeroAddress.selector);
            this.deploy(wired);
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
