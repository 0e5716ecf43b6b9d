// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ERC4626} from "@openzeppelin/contracts/token/ERC20/extensions/ERC4626.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";
import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

/// @notice Deposits and withdrawals
contract LiquidityTest is ProtocolTest {
    address private saver = makeAddr("saver");

    function setUp() public override {
        super.setUp();
        vm.prank(admin);
        usdc.mint(saver, 100_000 * USDC);
        vm.prank(saver);
        usdc.approve(address(vault), type(uint256).max);
    }

    function test_GivesBackWhatWasPutIn() public {
        vm.startPrank(saver);
        uint256 shares = vault.deposit(1_000 * USDC, saver);
        assertEq(shares, 1_000e12);
        vault.redeem(shares, saver, saver);
        assertApproxEqAbs(usdc.balanceOf(saver), 100_000 * USDC, 1);
    }

    function test_ProfitBelongsToTheShares() public {
        vm.prank(saver);
        uint256 shares = vault.deposit(100_000 * USDC, saver);
        uint256 id = _open(nvda, 20_000 * USDC);
        _setPrice(nvda, 150 * USD);
        _submit(_reduceIntent(id, 10_000));

        uint256 total = vault.totalAssets();
        vm.prank(saver);
        uint256 paid = vault.redeem(shares, saver, saver);
        assertApproxEqAbs(paid, total * 100_000 / 1_100_000, 1);
        assertGt(paid, 100_000 * USDC);
    }

    function test_TakesAsMuchAsItCanCountAndSaysSo() public {
        uint256 max = vault.maxDeposit(saver);
        assertEq(max, type(uint96).max - vault.idleAssets());
        vm.expectRevert(abi.encodeWithSelector(ERC4626.ERC4626ExceededMaxDeposit.selector, saver, max + 1, max));
        vault.deposit(max + 1, saver);
        uint256 shares = vault.maxMint(saver);
        vm.prank(admin);
        usdc.mint(saver, max);
        vm.startPrank(saver);
        usdc.approve(address(vault), max);
        vault.mint(shares, saver);
        assertLe(vault.maxDeposit(saver), 1);
    }

    // Pauses and stale prices

    function test_PausedLiquidityStopsAllFour() public {
        vm.prank(operator);
        vault.setLiquidityPaused(true);
        assertEq(vault.maxDeposit(saver), 0);
        assertEq(vault.maxMint(saver), 0);
        assertEq(vault.maxWithdraw(investor), 0);
        assertEq(vault.maxRedeem(investor), 0);

        vm.startPrank(investor);
        vm.expectRevert(IMandateVault.LiquidityPaused.selector);
        vault.deposit(1, investor);
        vm.expectRevert(IMandateVault.LiquidityPaused.selector);
        vault.mint(1, investor);
        vm.expectRevert(IMandateVault.LiquidityPaused.selector);
        vault.withdraw(1, investor, investor);
        vm.expectRevert(IMandateVault.LiquidityPaused.selector);
        vault.redeem(1, investor, investor);
    }

    function test_PausedLiquidityLeavesTradingAlone() public {
        vm.prank(operator);
        vault.setLiquidityPaused(true);
        uint256 id = _open(nvda, 1_000 * USDC);
        _submit(_reduceIntent(id, 10_000));
    }

    function test_AStalePriceOfATokenNotHeldStopsNothing() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        _submit(_reduceIntent(id, 10_000));
        skip(2 hours);
        vm.prank(saver);
        vault.deposit(1_000 * USDC, saver);
    }

    // What can be taken out

    function test_PaysOutNoMoreThanIsIdle() public {
        _open(nvda, 20_000 * USDC);
        _setOraclePrice(nvda, 200 * USD);
        uint256 idle = vault.idleAssets();
        assertGt(vault.previewRedeem(vault.balanceOf(investor)), idle);
        assertEq(vault.maxWithdraw(investor), idle);

        vm.startPrank(investor);
        vm.expectRevert(abi.encodeWithSelector(ERC4626.ERC4626ExceededMaxWithdraw.selector, investor, idle + 1, idle));
        vault.withdraw(idle + 1, investor, investor);
        vault.withdraw(idle, investor, investor);
        assertEq(vault.idleAssets(), 0);
        assertEq(vault.maxRedeem(investor), 0);
    }

    function testFuzz_WhateverIsOfferedCanBeTaken(uint256 traded, uint256 price, uint16 fee, bool byShares) public {
        vm.prank(admin);
        vault.setFees(0, bound(fee, 0, 1_000), treasury);
        _open(nvda, bound(traded, USDC, MAX_TRADE));
        _setOraclePrice(nvda, bound(price, USD, 100_000 * USD));
        uint256 idle = vault.idleAssets();

        vm.startPrank(investor);
        if (byShares) vault.redeem(vault.maxRedeem(investor), investor, investor);
        else vault.withdraw(vault.maxWithdraw(investor), investor, investor);
        assertEq(usdc.balanceOf(investor) + usdc.balanceOf(treasury) + vault.idleAssets(), idle);
    }

    // Fees

    function test_TakesADepositFeeOutOfWhatIsPaid() public {
        vm.prank(admin);
        vault.setFees(100, 0, treasury);
        vm.startPrank(saver);
        assertEq(vault.previewDeposit(1_000 * USDC), 990e12);
        assertEq(vault.deposit(1_000 * USDC, saver), 990e12);
        assertEq(usdc.balanceOf(treasury), 10 * USDC);

        assertEq(vault.mint(990e12, saver), 1_000 * USDC);
        assertEq(usdc.balanceOf(treasury), 20 * USDC);
        assertEq(usdc.balanceOf(saver), 98_000 * USDC);
    }

    function test_TakesAWithdrawalFeeOutOfWhatLeaves() public {
        vm.prank(saver);
        vault.deposit(10_000 * USDC, saver);
        vm.prank(admin);
        vault.setFees(0, 100, treasury);
        vm.startPrank(saver);
        assertEq(vault.redeem(1_000e12, saver, saver), 990 * USDC);
        assertEq(usdc.balanceOf(treasury), 10 * USDC);
        assertEq(vault.withdraw(990 * USDC, saver, saver), 1_000e12);
        assertEq(usdc.balanceOf(treasury), 20 * USDC);
        assertEq(usdc.balanceOf(saver), 90_000 * USDC + 1_980 * USDC);
    }

    // Rounding and inflation

    function testFuzz_ARoundTripNeverPays(uint256 assets, uint256 profit, uint16 depositFee, uint16 withdrawFee)
        public
    {
        vm.startPrank(admin);
        vault.setFees(bound(depositFee, 0, 1_000), bound(withdrawFee, 0, 1_000), treasury);
        profit = bound(profit, 0, 1e15);
        usdc.mint(address(vault), profit);
        vm.stopPrank();
        vm.prank(address(router));
        vault.recordReceived(address(usdc), profit);
        assets = bound(assets, 1, 100_000 * USDC);

        vm.startPrank(saver);
        uint256 shares = vault.deposit(assets, saver);
        vault.redeem(shares, saver, saver);
        assertLe(usdc.balanceOf(saver), 100_000 * USDC);
    }

    function testFuzz_PreviewsAreExact(uint256 amount, uint16 fee) public {
        vm.prank(admin);
        vault.setFees(bound(fee, 0, 1_000), bound(fee, 0, 1_000), treasury);
        amount = bound(amount, 1_000, 10_000 * USDC);
        vm.startPrank(saver);
        uint256 expected = vault.previewDeposit(amount);
        assertEq(vault.deposit(amount, saver), expected);
        expected = vault.previewMint(amount * 1e6);
        assertEq(vault.mint(amount * 1e6, saver), expected);
        expected = vault.previewWithdraw(amount / 2);
        assertEq(vault.withdraw(amount / 2, saver, saver), expected);
        expected = vault.previewRedeem(amount * 1e5);
        assertEq(vault.redeem(amount * 1e5, saver, saver), expected);
    }

    /// @dev The first depositor donates to make the next one's shares round to nothing.
    function test_InflatingTheFirstShareIsInVain() public {
        vm.startPrank(investor);
        vault.redeem(vault.balanceOf(investor), investor, investor);
        usdc.approve(address(vault), type(uint256).max);
        vault.deposit(1, investor);
        usdc.transfer(address(vault), 50_000 * USDC);
        vm.stopPrank();

        vm.prank(saver);
        uint256 shares = vault.deposit(10_000 * USDC, saver);
        assertEq(shares, 10_000e12);
        assertEq(vault.previewRedeem(shares), 10_000 * USDC);
        assertEq(vault.totalAssets(), 10_000 * USDC + 1);
    }
}
