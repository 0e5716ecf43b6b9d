// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

/// @notice When shares are made, redeemed and moved: holding time, fees that stay, the breaker and the age of prices
contract SharePriceTest is ProtocolTest {
    address private saver = makeAddr("saver");

    function setUp() public override {
        super.setUp();
        vm.prank(admin);
        usdc.mint(saver, 1_000_000 * USDC);
        vm.prank(saver);
        usdc.approve(address(vault), type(uint256).max);
        _setLiquidity(0, 8 hours, 500, 1 days, 6 hours);
    }

    // Holding time

    function test_NewSharesRedeemAfterTheHoldingTimeAndAnEighth() public {
        vm.startPrank(saver);
        vm.expectEmit(address(vault));
        emit IMandateVault.SharesLockedUntil(saver, 1_000e12, block.timestamp + 9 hours);
        vault.deposit(1_000 * USDC, saver);
        assertEq(vault.lockedShares(saver), 1_000e12);
        assertEq(vault.maxRedeem(saver), 0);
        assertEq(vault.maxWithdraw(saver), 0);

        skip(9 hours - 1);
        assertEq(vault.maxRedeem(saver), 0);
        skip(1);
        assertEq(vault.lockedShares(saver), 0);
        assertEq(vault.maxRedeem(saver), 1_000e12);
        vault.redeem(1_000e12, saver, saver);
    }

    function test_LockedSharesDoNotMove() public {
        vm.prank(saver);
        vault.deposit(1_000 * USDC, saver);
        vm.prank(investor);
        vault.transfer(saver, 500e12);

        vm.startPrank(saver);
        vault.transfer(investor, 500e12);
        vm.expectRevert(abi.encodeWithSelector(IMandateVault.SharesLocked.selector, saver, 0, 1));
        vault.transfer(investor, 1);
        vault.approve(address(this), 1);
        vm.stopPrank();
        vm.expectRevert(abi.encodeWithSelector(IMandateVault.SharesLocked.selector, saver, 0, 1));
        vault.transferFrom(saver, address(this), 1);
    }

    function test_EachDepositHasItsOwnLock() public {
        vm.startPrank(saver);
        vault.deposit(1_000 * USDC, saver);
        skip(4 hours);
        vault.mint(500e12, saver);
        skip(5 hours);
        assertEq(vault.lockedShares(saver), 500e12);
        vault.redeem(1_000e12, saver, saver);
        skip(4 hours);
        vault.redeem(500e12, saver, saver);
    }

    /// Whoever deposits dust for somebody locks the dust alone, however often they do it.
    function testFuzz_NobodyExtendsTheLockOfAnother(uint32[20] calldata gaps) public {
        vm.prank(saver);
        vault.deposit(1_000 * USDC, saver);
        uint256 unlocksAt = block.timestamp + 9 hours;
        uint256 dust;
        for (uint256 i; i < gaps.length; ++i) {
            skip(gaps[i] % 1 hours);
            if (block.timestamp >= unlocksAt) break;
            _deposit(1);
            vm.prank(admin);
            usdc.mint(address(this), 1);
            usdc.approve(address(vault), 1);
            dust += vault.deposit(1, saver);
            assertEq(vault.lockedShares(saver), 1_000e12 + dust);
        }
        vm.warp(unlocksAt);
        assertGe(vault.maxRedeem(saver), 1_000e12);
    }

    function testFuzz_SharesAreLockedForTheHoldingTimeAtLeast(uint32[8] calldata gaps) public {
        uint256[8] memory boughtAt;
        for (uint256 i; i < gaps.length; ++i) {
            skip(gaps[i] % 3 hours);
            boughtAt[i] = block.timestamp;
            vm.prank(saver);
            vault.mint(1e12, saver);
            uint256 young;
            for (uint256 j; j <= i; ++j) {
                if (block.timestamp < boughtAt[j] + 8 hours) young += 1e12;
            }
            assertGe(vault.lockedShares(saver), young);
            assertLe(vault.lockedShares(saver), vault.balanceOf(saver));
        }
        skip(9 hours);
        assertEq(vault.lockedShares(saver), 0);
    }

    /// @dev A deposit under the shorter time made everything before it look free.
    function test_Skin12_AShorterHoldingTimeFreesNoOlderLockEarly() public {
        vm.prank(saver);
        vault.deposit(1_000 * USDC, saver);
        uint256 unlocksAt = block.timestamp + 9 hours;
        _setLiquidity(0, 1 hours, 500, 1 days, 6 hours);
        skip(2 hours);
        vm.prank(saver);
        vault.deposit(1, saver);
        skip(2 hours);
        assertGe(vault.lockedShares(saver), 1_000e12);
        assertEq(vault.maxRedeem(saver), 0);
        vm.warp(unlocksAt);
        assertEq(vault.lockedShares(saver), 0, "the old lock keeps its end, and the new one waits for it");
    }

    function test_Skin12_ALongerHoldingTimeHoldsForSharesThatWouldJoinAnOlderLock() public {
        vm.startPrank(saver);
        vault.deposit(1_000 * USDC, saver);
        vm.stopPrank();
        _setLiquidity(0, 1 days, 500, 1 days, 6 hours);
        vm.prank(saver);
        vault.deposit(1_000 * USDC, saver);
        skip(1 days - 1);
        assertEq(vault.lockedShares(saver), 1_000e12);
    }

    function test_WithoutAHoldingTimeSharesRedeemAtOnce() public {
        _setLiquidity(0, 0, 0, 0, 0);
        vm.startPrank(saver);
        vault.deposit(1_000 * USDC, saver);
        vault.redeem(1_000e12, saver, saver);
    }

    // Fees

    function test_FeesWithoutARecipientStayForTheOtherHolders() public {
        _setLiquidity(0, 0, 0, 0, 0);
        vm.prank(admin);
        vault.setFees(100, 100, address(0));
        uint256 before = vault.convertToAssets(1e12);

        vm.startPrank(saver);
        assertEq(vault.deposit(100_000 * USDC, saver), 99_000e12);
        assertEq(vault.totalAssets(), 1_100_000 * USDC);
        assertGt(vault.convertToAssets(1e12), before);
        uint256 paid = vault.redeem(vault.balanceOf(saver), saver, saver);
        assertLt(paid, 98_200 * USDC);
        vm.stopPrank();
        assertApproxEqAbs(vault.convertToAssets(vault.balanceOf(investor)), 1_100_000 * USDC - paid, 10);
    }

    function test_AFeeThatCannotBePaidStaysAndSaysSo() public {
        vm.prank(admin);
        vault.setFees(0, 100, treasury);
        vm.mockCallRevert(address(usdc), abi.encodeWithSelector(usdc.transfer.selector, treasury), "blocked");
        vm.expectEmit(address(vault));
        emit IMandateVault.FeeRetained(treasury, 10 * USDC);
        vm.prank(investor);
        vault.redeem(1_000e12, investor, investor);
        assertEq(vault.totalAssets(), DEPOSITED - 990 * USDC);
    }

    // Prices

    function test_SharesNeedYoungerPricesThanTrades() public {
        _open(nvda, 1_000 * USDC);
        _setOraclePrice(nvda, NVDA_PRICE);
        _setLiquidity(15 minutes, 0, 0, 0, 0);
        skip(15 minutes);
        uint256 value = vault.previewRedeem(DEPOSITED * 1e6);
        skip(1);
        assertApproxEqAbs(vault.previewRedeem(DEPOSITED * 1e6), value - 1_000 * USDC, 10 * USDC);
        _open(tsla, 1_000 * USDC);
    }

    function test_TheVaultsOwnLimitHoldsWhereItIsShorter() public {
        _open(nvda, 1_000 * USDC);
        _setLiquidity(2 hours, 0, 0, 0, 0);
        uint256 value = vault.previewRedeem(DEPOSITED * 1e6);
        skip(1 hours + 1);
        assertLt(vault.previewRedeem(DEPOSITED * 1e6), value);
    }

    function test_ATokenWrittenOffNeedsNoPrice() public {
        _open(nvda, 10_000 * USDC);
        vm.prank(investor);
        vault.redeem(900_000e12, investor, investor);
        skip(2 hours);
        assertEq(vault.maxRedeem(investor), 0);
        vm.prank(admin);
        vault.setTokenWrittenOff(address(nvda), true);
        _setLiquidity(0, 0, 500, 1 days, 6 hours);
        assertGt(vault.maxRedeem(investor), 0);
    }

    // The breaker

    function test_AShareThatMovesMoreThanTheBoundIsNeitherMadeNorRedeemed() public {
        uint256 anchor = vault.sharePriceBreaker().newer;
        assertEq(anchor, USDC);
        _gain(50_000 * USDC);
        assertFalse(vault.sharePriceBreaker().isOpen);
        assertGt(vault.maxRedeem(investor), 0);

        _gain(10 * USDC);
        assertTrue(vault.sharePriceBreaker().isOpen);
        assertEq(vault.maxRedeem(investor), 0);
        assertEq(vault.maxWithdraw(investor), 0);
        assertEq(vault.maxDeposit(investor), 0);
        assertEq(vault.maxMint(investor), 0);
        uint256 price = vault.convertToAssets(1e12);
        vm.expectRevert(abi.encodeWithSelector(IMandateVault.SharePriceJumped.selector, anchor, price, 500));
        vm.prank(investor);
        vault.redeem(1, investor, investor);
        vm.expectRevert(abi.encodeWithSelector(IMandateVault.SharePriceJumped.selector, anchor, price, 500));
        vm.prank(saver);
        vault.deposit(1, saver);
    }

    function test_AJumpThatHoldsForTheCooldownIsAccepted() public {
        _gain(100_000 * USDC);
        uint256 price = vault.convertToAssets(1e12);
        vm.expectEmit(address(vault));
        emit IMandateVault.SharePriceJumpSeen(USDC, price, block.timestamp + 6 hours);
        vault.checkpointSharePrice();
        assertEq(vault.sharePriceBreaker().jumpedTo, price);
        assertEq(vault.sharePriceBreaker().acceptedAt, block.timestamp + 6 hours);

        skip(6 hours - 1);
        vault.checkpointSharePrice();
        assertTrue(vault.sharePriceBreaker().isOpen);
        skip(1);
        vm.expectEmit(address(vault));
        emit IMandateVault.SharePriceJumpAccepted(price);
        vault.checkpointSharePrice();
        assertFalse(vault.sharePriceBreaker().isOpen);
        assertEq(vault.sharePriceBreaker().jumpedTo, 0);
        assertGt(vault.maxRedeem(investor), 0);
    }

    function test_AJumpThatMovesOnStartsItsCooldownAgain() public {
        _gain(100_000 * USDC);
        vault.checkpointSharePrice();
        skip(5 hours);
        _gain(100_000 * USDC);
        vault.checkpointSharePrice();
        assertEq(vault.sharePriceBreaker().acceptedAt, block.timestamp + 6 hours);
        skip(1 hours);
        vault.checkpointSharePrice();
        assertTrue(vault.sharePriceBreaker().isOpen);
    }

    function test_ASharePriceThatComesBackNeedsNoCooldown() public {
        uint256 id = _open(nvda, 20_000 * USDC);
        vm.prank(admin);
        oracle.grantRole(keccak256("ORACLE_FORCER_ROLE"), admin);
        vm.prank(admin);
        oracle.forcePrice(address(nvda), int256(1_000 * USD));
        vault.checkpointSharePrice();
        assertTrue(vault.sharePriceBreaker().isOpen);
        vm.prank(admin);
        oracle.forcePrice(address(nvda), int256(100 * USD));
        assertFalse(vault.sharePriceBreaker().isOpen);
        vault.checkpointSharePrice();
        assertEq(vault.sharePriceBreaker().jumpedTo, 0);
        _submit(_reduceIntent(id, 10_000));
    }

    /// A record of an earlier jump, which nobody took back, must not let the next one in without a cooldown.
    function test_AJumpThatWentBackLendsItsCooldownToNoLaterOne() public {
        _open(nvda, 20_000 * USDC);
        bytes32 forcer = oracle.ORACLE_FORCER_ROLE();
        vm.startPrank(admin);
        oracle.grantRole(forcer, admin);
        oracle.forcePrice(address(nvda), int256(1_000 * USD));
        vault.checkpointSharePrice();
        oracle.forcePrice(address(nvda), int256(100 * USD));
        vm.stopPrank();
        vm.prank(saver);
        vault.deposit(1 * USDC, saver);

        skip(6 hours);
        _forceAndCheckpoint(1_000 * USD);
        assertTrue(vault.sharePriceBreaker().isOpen);
        assertEq(vault.sharePriceBreaker().acceptedAt, block.timestamp + 6 hours);
        skip(7 hours + 1);
        _forceAndCheckpoint(1_000 * USD);
        assertTrue(vault.sharePriceBreaker().isOpen, "the record has expired");
        skip(6 hours);
        _forceAndCheckpoint(1_000 * USD);
        assertFalse(vault.sharePriceBreaker().isOpen);
    }

    function _forceAndCheckpoint(uint256 price) private {
        vm.prank(admin);
        oracle.forcePrice(address(nvda), int256(price));
        vault.checkpointSharePrice();
    }

    /// Checkpoints are for anyone, so they must not be a way to walk the share price.
    function test_CheckpointsDoNotMoveTheAnchorsFasterThanHalfAWindow() public {
        for (uint256 i; i < 4; ++i) {
            _gain(20_000 * USDC);
            vault.checkpointSharePrice();
        }
        assertEq(vault.sharePriceBreaker().newer, USDC);
        assertTrue(vault.sharePriceBreaker().isOpen);
    }

    function test_ASlowGainIsFollowedByCheckpoints() public {
        for (uint256 i; i < 12; ++i) {
            skip(12 hours);
            _gain(20_000 * USDC);
            vault.checkpointSharePrice();
        }
        assertFalse(vault.sharePriceBreaker().isOpen);
        assertGt(vault.convertToAssets(1e12), 1_230_000);
    }

    function test_AnEmptyVaultStartsAgain() public {
        uint256 shares = vault.balanceOf(investor);
        vm.prank(investor);
        vault.redeem(shares, investor, investor);
        assertEq(vault.sharePriceBreaker().newer, 0);
        vm.prank(saver);
        vault.deposit(1_000 * USDC, saver);
        assertGt(vault.sharePriceBreaker().newer, 0);
        assertFalse(vault.sharePriceBreaker().isOpen);
    }

    function test_ABreakerNeedsABoundAndAWindow() public {
        IMandateVault.LiquidityPolicy memory policy = IMandateVault.LiquidityPolicy(0, 0, 500, 0, 0);
        vm.startPrank(admin);
        vm.expectRevert(abi.encodeWithSelector(IMandateVault.InvalidLiquidityPolicy.selector, policy));
        vault.setLiquidityPolicy(policy);
        policy = IMandateVault.LiquidityPolicy(1, 2, 3, 4, 5);
        vm.expectEmit(address(vault));
        emit IMandateVault.LiquidityPolicyUpdated(policy);
        vault.setLiquidityPolicy(policy);
        assertEq(abi.encode(vault.liquidityPolicy()), abi.encode(policy));
    }

    function _setLiquidity(uint32 maxPriceAge, uint32 holding, uint16 maxMove, uint32 window, uint32 cooldown) private {
        vm.prank(admin);
        vault.setLiquidityPolicy(IMandateVault.LiquidityPolicy(maxPriceAge, holding, maxMove, window, cooldown));
    }

    /// @dev What a trade brings beyond what it sold.
    function _gain(uint256 amount) private {
        vm.prank(admin);
        usdc.mint(address(vault), amount);
        vm.prank(address(router));
        vault.recordReceived(address(usdc), amount);
    }
}
