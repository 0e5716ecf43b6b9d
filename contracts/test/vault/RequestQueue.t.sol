// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {RequestQueue} from "../../src/RequestQueue.sol";
import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {IPriceOracle} from "../../src/interfaces/IPriceOracle.sol";
import {IRequestQueue} from "../../src/interfaces/IRequestQueue.sol";
import {FixedPriceVenue} from "../doubles/FixedPriceVenue.sol";
import {IssuedStock} from "./IssuedStock.sol";

/// @notice Requests that wait for the next price: when they settle, in which order, at which price, and for whom
contract RequestQueueTest is IssuedStock {
    address private saver = makeAddr("saver");
    RequestQueue private queue;

    /// @dev A vault with a tenth in a stock, on a weekend.
    function setUp() public override {
        super.setUp();
        queue = new RequestQueue(address(vault));
        vm.startPrank(admin);
        vault.setRequestQueue(address(queue));
        vault.setLiquidityPolicy(IMandateVault.LiquidityPolicy(15 minutes, 8 hours, 500, 1 days, 6 hours));
        usdc.mint(saver, 1_000_000 * USDC);
        vm.stopPrank();
        vm.prank(saver);
        usdc.approve(address(queue), type(uint256).max);
        vm.prank(investor);
        vault.approve(address(queue), type(uint256).max);
        for (uint256 i; i < 5; ++i) {
            _hold(20_000 * USDC);
        }
        skip(2 days);
    }

    // When, and at which price

    function test_AWeekendsDepositPaysTheFirstPriceOfTheOpen() public {
        uint256 id = _requestDeposit(11_000 * USDC);
        assertEq(queue.pendingDepositRequest(id, saver), 11_000 * USDC);
        _settle(0, 0);
        _open(102);
        uint256 expected = vault.previewDeposit(11_000 * USDC);
        vm.expectEmit(address(queue));
        emit IRequestQueue.DepositRequestSettled(saver, id, 11_000 * USDC, expected);
        _settle(1, 0);
        assertEq(vault.balanceOf(saver), expected);
        assertLt(expected, 11_000 * WHOLE_SHARE, "the price of the open, not the last one before the weekend");
        assertEq(queue.pendingDepositRequest(id, saver), 0);
        assertEq(vault.lockedShares(saver), expected, "the holding time begins");
    }

    function test_AWeekendsRedemptionIsPaidAtTheFirstPriceOfTheOpen() public {
        uint256 id = _requestRedeem(11_000 * WHOLE_SHARE);
        assertEq(queue.pendingRedeemRequest(id, investor), 11_000 * WHOLE_SHARE);
        _settle(0, 0);
        _open(98);
        uint256 expected = vault.previewRedeem(11_000 * WHOLE_SHARE);
        vm.expectEmit(address(queue));
        emit IRequestQueue.RedeemRequestSettled(investor, id, 11_000 * WHOLE_SHARE, expected, 0);
        _settle(0, 1);
        assertEq(usdc.balanceOf(investor), expected);
        assertLt(expected, 11_000 * USDC);
    }

    function test_EveryHeldTokensPriceMustBeObservedAfterTheRequest() public {
        _setOraclePrice(stock, NVDA_PRICE);
        vault.checkpointSharePrice();
        skip(5 minutes);
        _requestDeposit(1_000 * USDC);
        assertEq(queue.settleableBefore(), block.timestamp - 5 minutes, "fresh, and older than the request");
        _settle(0, 0);
        _setOraclePrice(stock, NVDA_PRICE);
        _settle(0, 0);
        skip(1);
        _settle(0, 0);
        _setOraclePrice(stock, NVDA_PRICE);
        _settle(1, 0);
    }

    function test_APriceOfTheRequestsOwnSecondDoesNotCountForIt() public {
        _open(100);
        _requestDeposit(1_000 * USDC);
        _setOraclePrice(stock, NVDA_PRICE);
        _settle(0, 0);
    }

    function test_AVaultWithoutTokensSettlesFromTheNextSecondOn() public {
        _sellAll();
        uint256 id = _requestDeposit(1_000 * USDC);
        _settle(0, 0);
        skip(1);
        _settle(1, 0);
        assertEq(queue.pendingDepositRequest(id, saver), 0);
    }

    function test_RequestsWaitWhileATokenCannotBeSold() public {
        _requestRedeem(1_000 * WHOLE_SHARE);
        _open(100);
        _pause(true);
        assertEq(queue.settleableBefore(), 0);
        assertGt(vault.totalAssets(), 0);
        _settle(0, 0);
        _pause(false);
        _settle(0, 1);
    }

    function test_ADustOfATokenWithoutAPriceKeepsNobodyWaiting() public {
        _sellAll();
        _hold(100 * USDC);
        skip(30 days);
        _requestRedeem(1_000 * WHOLE_SHARE);
        skip(1);
        _settle(0, 1);
    }

    function test_NothingSettlesWhileLiquidityIsPaused() public {
        _requestDeposit(1_000 * USDC);
        _open(100);
        vm.prank(operator);
        vault.setLiquidityPaused(true);
        _settle(0, 0);
        vm.prank(operator);
        vault.setLiquidityPaused(false);
        _settle(1, 0);
    }

    function test_AJumpedSharePriceSettlesNothingUntilTheVaultAcceptsIt() public {
        _requestRedeem(1_000 * WHOLE_SHARE);
        _open(170);
        assertTrue(vault.sharePriceBreaker().isOpen);
        _settle(0, 0);
        assertEq(vault.sharePriceBreaker().jumpedTo, 0, "the queue accepts no jump");
        vault.checkpointSharePrice();
        skip(6 hours);
        _open(170);
        vault.checkpointSharePrice();
        _settle(0, 1);
    }

    function test_FeesAreThoseOfTheVault() public {
        vm.prank(admin);
        vault.setFees(100, 100, treasury);
        _requestDeposit(1_000 * USDC);
        _requestRedeem(1_000 * WHOLE_SHARE);
        _open(100);
        _settle(1, 1);
        assertApproxEqAbs(vault.balanceOf(saver), 990 * WHOLE_SHARE, WHOLE_SHARE / 100);
        assertApproxEqAbs(usdc.balanceOf(investor), 990 * USDC, USDC / 100);
        assertApproxEqAbs(usdc.balanceOf(treasury), 20 * USDC, USDC / 100);
    }

    // The order

    function test_RequestsSettleInTheirOrderAndInPages() public {
        for (uint256 i; i < 5; ++i) {
            _requestDeposit((100 + i) * USDC);
        }
        _open(100);
        _settle(2, 0);
        assertEq(queue.pendingDepositRequest(2, saver), 0);
        assertEq(queue.pendingDepositRequest(3, saver), 102 * USDC);
        (uint256 deposits, uint256 redemptions) = queue.settle(100, 100);
        assertEq(deposits, 3);
        assertEq(redemptions, 0);
        (uint256 nextDeposit, uint256 newDeposit,,) = queue.heads();
        assertEq(nextDeposit, 6);
        assertEq(newDeposit, 6);
    }

    function test_ARedemptionThatIdleUsdcDoesNotCoverIsPaidInPartAndKeepsItsPlace() public {
        _requestRedeem(950_000 * WHOLE_SHARE);
        _requestRedeem(1_000 * WHOLE_SHARE);
        _open(100);
        uint256 idle = vault.idleAssets();
        (, uint256 redemptions) = queue.settle(0, 100);
        assertEq(redemptions, 1);
        assertApproxEqAbs(usdc.balanceOf(investor), idle, USDC);
        uint256 left = queue.pendingRedeemRequest(1, investor);
        assertApproxEqRel(left, 50_000 * WHOLE_SHARE, 0.01e18);
        assertEq(
            queue.pendingRedeemRequest(2, investor), 1_000 * WHOLE_SHARE, "the small one does not pass the large one"
        );
        _settle(0, 0);

        // A deposit behind them brings what they wait for.
        _requestDeposit(60_000 * USDC);
        skip(1);
        _open(100);
        (uint256 deposits, uint256 paid) = queue.settle(10, 10);
        assertEq(deposits, 1);
        assertEq(paid, 2);
        assertEq(queue.pendingRedeemRequest(2, investor), 0);
    }

    function test_ACancelledRequestIsPassedOver() public {
        uint256 first = _requestRedeem(900_000 * WHOLE_SHARE);
        _requestRedeem(1_000 * WHOLE_SHARE);
        _open(100);
        vm.prank(investor);
        queue.cancelRedeemRequest(first, investor);
        _settle(0, 2);
        assertEq(queue.pendingRedeemRequest(2, investor), 0);
    }

    function test_ThousandsOfDustRequestsCostTheirMakerMoreThanTheOneWhoSettles() public {
        uint256 gas = gasleft();
        for (uint256 i; i < 400; ++i) {
            _requestDeposit(queue.MIN_ASSETS());
        }
        uint256 made = gas - gasleft();
        for (uint256 i = 1; i <= 400; ++i) {
            vm.prank(saver);
            queue.cancelDepositRequest(i, saver);
        }
        _requestDeposit(1_000 * USDC);
        _open(100);
        gas = gasleft();
        _settle(1_000, 0);
        assertLt(gas - gasleft(), made / 10, "cancelled ones are passed over");
        assertEq(queue.pendingDepositRequest(401, saver), 0);
    }

    // Making and cancelling

    function test_OnlyTheOwnerMakesARequestAndOnlyTheControllerCancelsIt() public {
        vm.expectRevert(abi.encodeWithSelector(IRequestQueue.NotOwner.selector, saver, address(this)));
        queue.requestDeposit(1_000 * USDC, address(this), saver);
        vm.expectRevert(abi.encodeWithSelector(IRequestQueue.NotOwner.selector, investor, address(this)));
        queue.requestRedeem(1_000 * WHOLE_SHARE, address(this), investor);

        vm.prank(saver);
        uint256 id = queue.requestDeposit(1_000 * USDC, owner, saver);
        vm.expectRevert(abi.encodeWithSelector(IRequestQueue.NotController.selector, owner, saver));
        vm.prank(saver);
        queue.cancelDepositRequest(id, owner);
        vm.expectRevert(abi.encodeWithSelector(IRequestQueue.RequestNotPending.selector, id));
        vm.prank(saver);
        queue.cancelDepositRequest(id, saver);
        vm.prank(owner);
        queue.cancelDepositRequest(id, owner);
        assertEq(usdc.balanceOf(owner), 1_000 * USDC);
    }

    function test_ARequestIsCancelledOnceAndOnlyBeforeItSettles() public {
        uint256 first = _requestRedeem(1_000 * WHOLE_SHARE);
        uint256 second = _requestRedeem(1_000 * WHOLE_SHARE);
        uint256 held = vault.balanceOf(investor);
        vm.prank(investor);
        queue.cancelRedeemRequest(first, investor);
        assertEq(vault.balanceOf(investor), held + 1_000 * WHOLE_SHARE);
        _open(100);
        _settle(0, 2);
        uint256[4] memory gone = [first, second, 0, 3];
        for (uint256 i; i < gone.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IRequestQueue.RequestNotPending.selector, gone[i]));
            vm.prank(investor);
            queue.cancelRedeemRequest(gone[i], investor);
        }
    }

    function test_SmallRequestsAndNobodysAreRefused() public {
        uint256 least = queue.MIN_ASSETS();
        vm.startPrank(saver);
        vm.expectRevert(abi.encodeWithSelector(IRequestQueue.RequestTooSmall.selector, least - 1, least));
        queue.requestDeposit(least - 1, saver, saver);
        vm.expectRevert(IRequestQueue.ZeroAddress.selector);
        queue.requestDeposit(least, address(0), saver);
        vm.stopPrank();
        vm.expectPartialRevert(IRequestQueue.RequestTooSmall.selector);
        vm.prank(investor);
        queue.requestRedeem(9 * WHOLE_SHARE, investor, investor);
        vm.expectRevert(IRequestQueue.ZeroAddress.selector);
        new RequestQueue(address(0));
    }

    function test_SharesWithinTheirHoldingTimeCannotBeRequested() public {
        _requestDeposit(1_000 * USDC);
        _open(100);
        _settle(1, 0);
        uint256 shares = vault.balanceOf(saver);
        vm.startPrank(saver);
        vault.approve(address(queue), shares);
        vm.expectRevert(abi.encodeWithSelector(IMandateVault.SharesLocked.selector, saver, 0, shares));
        queue.requestRedeem(shares, saver, saver);
        skip(9 hours);
        queue.requestRedeem(shares, saver, saver);
    }

    function test_AControllerThatCannotBePaidKeepsNobodyWaiting() public {
        vm.prank(investor);
        uint256 first = queue.requestRedeem(1_000 * WHOLE_SHARE, owner, investor);
        _requestRedeem(1_000 * WHOLE_SHARE);
        _open(100);
        vm.mockCallRevert(address(usdc), abi.encodeWithSelector(usdc.transfer.selector, owner), "blocked");
        vm.expectEmit(true, true, false, false, address(queue));
        emit IRequestQueue.PayoutHeld(owner, first, 0);
        _settle(0, 2);
        assertGt(usdc.balanceOf(investor), 990 * USDC);
        uint256 held = queue.claimableAssets(owner);
        assertGt(held, 990 * USDC);

        vm.clearMockedCalls();
        queue.claimAssets(owner);
        assertEq(usdc.balanceOf(owner), held);
        assertEq(queue.claimAssets(owner), 0);
    }

    function test_TheVaultNamesOnlyAQueueOfItsOwn() public {
        assertEq(queue.vault(), address(vault));
        assertEq(vault.requestQueue(), address(queue));
        IMandateVault other = IMandateVault(makeAddr("another vault"));
        vm.mockCall(address(other), abi.encodeWithSignature("asset()"), abi.encode(usdc));
        address foreign = address(new RequestQueue(address(other)));
        vm.startPrank(admin);
        vm.expectRevert(abi.encodeWithSelector(IMandateVault.InvalidRequestQueue.selector, foreign));
        vault.setRequestQueue(foreign);
        vault.setRequestQueue(address(0));
        assertEq(vault.requestQueue(), address(0));
    }

    // What is known by then

    /// @dev The attacker knows the price of the open, and makes any request, or both, before it.
    function testFuzz_WhoKnowsTheOpenGainsNothingFromARequestBeforeIt(uint256 bps, uint256 deposit, uint256 shares)
        public
    {
        vm.prank(investor);
        vault.transfer(saver, 100_000 * WHOLE_SHARE);
        vm.prank(saver);
        vault.approve(address(queue), type(uint256).max);
        uint256 percent = bound(bps, 60, 140);
        deposit = bound(deposit, queue.MIN_ASSETS(), 900_000 * USDC);
        shares = bound(shares, 11 * WHOLE_SHARE, 100_000 * WHOLE_SHARE);
        _requestDeposit(deposit);
        vm.prank(saver);
        queue.requestRedeem(shares, saver, saver);
        _open(percent);
        uint256 idleHands = 100_000 * WHOLE_SHARE;
        uint256 without = usdc.balanceOf(saver) + deposit + vault.convertToAssets(idleHands);
        uint256 others = vault.convertToAssets(vault.balanceOf(investor));
        queue.settle(10, 10);
        uint256 inQueue = queue.pendingRedeemRequest(1, saver);
        uint256 waiting = queue.pendingDepositRequest(1, saver);
        uint256 has = usdc.balanceOf(saver) + waiting + vault.convertToAssets(vault.balanceOf(saver) + inQueue);
        assertLe(has, without);
        assertGe(vault.convertToAssets(vault.balanceOf(investor)) + 1, others);
    }

    /// @dev As on 29 August 2026: a weekend on which a pool stood at 4.6 times the last price of the market.
    function testFuzz_NobodyGainsFromAPoolAtAMultipleOfTheLastPriceOnAWeekend(
        uint256 percent,
        bool isLarge,
        bool enters
    ) public {
        FixedPriceVenue venue = new FixedPriceVenue(address(usdc));
        venue.setPrice(address(issued), NVDA_PRICE);
        vm.prank(admin);
        oracle.setSecondOpinion(address(issued), IPriceOracle.SecondOpinion(address(venue), 300));
        if (!isLarge) {
            _sellAll();
            _hold(10_000 * USDC);
        }
        venue.setPrice(address(issued), NVDA_PRICE * 46 / 10);
        if (isLarge) {
            // The breaker leaves no way in or out but the queue, which settles nothing until markets open.
            assertEq(vault.maxDeposit(saver), 0);
            assertEq(vault.maxRedeem(investor), 0);
            _requestDeposit(11_000 * USDC);
            _requestRedeem(11_000 * WHOLE_SHARE);
            _settle(0, 0);
            return;
        }
        uint256 supply = vault.totalSupply();
        uint256 idle = vault.idleAssets();
        if (enters) {
            vm.startPrank(saver);
            usdc.approve(address(vault), type(uint256).max);
            vault.deposit(10_000 * USDC, saver);
            vm.stopPrank();
        } else {
            vm.prank(investor);
            vault.redeem(10_000 * WHOLE_SHARE, investor, investor);
        }
        // The market opens anywhere between half the last price and what the pool said.
        _setOraclePrice(stock, NVDA_PRICE * bound(percent, 50, 460) / 100);
        uint256 worth = vault.totalAssets();
        uint256 otherwise = worth - vault.idleAssets() + idle;
        assertGe((worth + 1) * (supply + 1e6), (otherwise + 1) * (vault.totalSupply() + 1e6));
    }

    /// @dev Everything in one transaction, with as much USDC as there is.
    function test_AFlashLoanNeitherSettlesNorGains() public {
        _open(100);
        vm.prank(admin);
        usdc.mint(address(this), 100_000_000 * USDC);
        usdc.approve(address(queue), type(uint256).max);
        uint256 id = queue.requestDeposit(100_000_000 * USDC, address(this), address(this));
        _settle(0, 0);
        queue.cancelDepositRequest(id, address(this));
        assertEq(usdc.balanceOf(address(this)), 100_000_000 * USDC);
        assertEq(vault.balanceOf(address(this)), 0);
    }

    /// @dev The markets open at a percentage of the last price; the oracle and the pool say so.
    function _open(uint256 percent) private {
        _setPrice(stock, NVDA_PRICE * percent / 100);
        skip(301);
        _setOraclePrice(stock, NVDA_PRICE * percent / 100);
    }

    function _sellAll() private {
        uint256 amount = vault.tokenLedger(address(issued));
        uint256 proceeds = amount * NVDA_PRICE / 1e18 / 100;
        vm.prank(admin);
        usdc.mint(address(vault), proceeds);
        vm.startPrank(address(router));
        vault.pullTokenForTrade(address(issued), address(market), amount);
        vault.recordReceived(address(usdc), proceeds);
        vm.stopPrank();
    }

    function _requestDeposit(uint256 assets) private returns (uint256) {
        vm.prank(saver);
        return queue.requestDeposit(assets, saver, saver);
    }

    function _requestRedeem(uint256 shares) private returns (uint256) {
        vm.prank(investor);
        return queue.requestRedeem(shares, investor, investor);
    }

    function _settle(uint256 deposits, uint256 redemptions) private {
        (uint256 settledDeposits, uint256 settledRedemptions) =
            queue.settle(deposits == 0 ? 10 : deposits, redemptions == 0 ? 10 : redemptions);
        assertEq(settledDeposits, deposits < 400 ? deposits : 1, "deposits");
        assertLe(settledRedemptions, redemptions, "redemptions");
        assertEq(settledRedemptions == 0, redemptions == 0, "redemptions");
    }
}
