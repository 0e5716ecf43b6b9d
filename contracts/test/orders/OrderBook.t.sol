// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {IOrderBook} from "../../src/interfaces/IOrderBook.sol";
import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {ITradePolicy} from "../../src/interfaces/ITradePolicy.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {OrderTest} from "./OrderTest.sol";

/// @notice The rules of docs/decisions/orders.md, one test each
contract OrderBookTest is OrderTest {
    function test_AnOrderIsKnownByTheDigestThatItsSignerSigned() public {
        IOrderBook.Order memory order = _entry(nvda, 1_000 * USDC);
        assertEq(orderBook.hashOrder(order), _orderDigest(order));
        assertEq(_place(order), _orderDigest(order));
        assertEq(orderBook.openOrderCount(agentId), 1);
        assertEq(router.nonces(agentId), 1);
    }

    function test_ALimitEntryOpensWithItsLadderAtOrBelowItsPrice() public {
        IOrderBook.Order memory order = _at(_entry(nvda, 1_000 * USDC), BELOW, 95 * USD);
        _place(order);
        _setPrice(nvda, 96 * USD);
        _refuseExecution(order, _notMet(order, 96 * USD, 95 * USD));
        _setPrice(nvda, 95 * USD);
        _execute(order);

        uint256 id = positions.openPositionId(agentId, address(nvda));
        assertEq(positions.getExitRules(id).length, 3);
        assertFalse(_isOpen(order));
        assertEq(orderBook.openOrderCount(agentId), 0);
    }

    function test_ABreakoutEntryOpensAtOrAboveItsPrice() public {
        IOrderBook.Order memory order = _at(_entry(nvda, 1_000 * USDC), ABOVE, 105 * USD);
        _place(order);
        _setPrice(nvda, 105 * USD - 1);
        _refuseExecution(order, _notMet(order, 105 * USD - 1, 105 * USD));
        _setPrice(nvda, 105 * USD);
        _execute(order);
        assertGt(positions.openPositionId(agentId, address(nvda)), 0);
    }

    function test_AnExecutedOrderLeavesNothingBehind() public {
        IOrderBook.Order memory order = _entry(nvda, 1_000 * USDC);
        _place(order);
        _execute(order);
        assertGt(positions.openPositionId(agentId, address(nvda)), 0);
        assertEq(orderBook.orderStateOf(agentId, orderBook.hashOrder(order)).positionId, 0);
    }

    function test_AClosedPositionTakesNoOrder() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        IOrderBook.Order memory order = _sale(id, 10_000);
        _place(order);
        _execute(order);
        _refusePlacing(_sale(id, 10_000), abi.encodeWithSelector(ITradeRouter.PositionNotOpen.selector, id));
    }

    function test_AnOrderAddsToItsPosition() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        IOrderBook.Order memory order = _at(_addition(id, 500 * USDC), BELOW, 99 * USD);
        _place(order);
        _setPrice(nvda, 99 * USD);
        uint256 held = _held(id);
        uint256 added = _execute(order);
        assertEq(_held(id), held + added);
    }

    function test_AStopAboveTheEntryProtectsAGain() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        _setPrice(nvda, 109 * USD);
        IOrderBook.Order memory order = _at(_sale(id, 10_000), BELOW, 107 * USD);
        _place(order);
        _setPrice(nvda, 107 * USD);
        assertGt(_execute(order), 1_050 * USDC);
        assertEq(_held(id), 0);
    }

    /// @dev A router that replaced the one of the order may not have given the book its role.
    function test_AnOrderWaitsForTheRoleOfItsBook() public {
        IOrderBook.Order memory order = _entry(nvda, 1_000 * USDC);
        _place(order);
        bytes32 role = router.EXECUTOR_ROLE();
        vm.prank(admin);
        router.revokeRole(role, address(orderBook));
        assertEq(
            orderBook.waitsFor(order),
            abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, address(orderBook), role)
        );
    }

    function test_AConditionWaitsForAPriceObservedAfterTheOrder() public {
        IOrderBook.Order memory order = _at(_entry(nvda, 1_000 * USDC), BELOW, 100 * USD);
        _setPrice(nvda, 100 * USD);
        uint256 placedAt = block.timestamp;
        _place(order);
        bytes memory early = abi.encodeWithSelector(
            IOrderBook.PriceBeforeOrder.selector, orderBook.hashOrder(order), placedAt, placedAt
        );
        _refuseExecution(order, early);
        assertEq(orderBook.waitsFor(order), early);
        _setPrice(nvda, 100 * USD);
        assertEq(orderBook.waitsFor(order), "");
        _execute(order);
    }

    function test_ATrailingStopFollowsTheHighestPriceAndFiresBelowIt() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        IOrderBook.Order memory order = _trail(id, 500);
        _place(order);
        _setPrice(nvda, 108 * USD);
        _raise(order);
        _setPrice(nvda, 103 * USD);
        _raise(order);
        assertEq(orderBook.orderStateOf(agentId, orderBook.hashOrder(order)).peak, 108 * USD, "a peak only rises");
        _refuseExecution(order, _notMet(order, 103 * USD, 10_260_000_000));
        _setPrice(nvda, 10_260_000_000);
        _execute(order);
        assertEq(_held(id), 0);
    }

    function test_ATrailingStopCountsThePriceAtWhichItWasPlaced() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        IOrderBook.Order memory order = _trail(id, 500);
        _place(order);
        _setPrice(nvda, 95 * USD);
        _execute(order);
        assertEq(_held(id), 0);
    }

    function test_ATrailingStopWithAnActivationPriceSleepsUntilThen() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        IOrderBook.Order memory order = _trail(id, 300);
        order.price = 105 * USD;
        _place(order);
        _setPrice(nvda, 104 * USD);
        _raise(order);
        _refuseExecution(order, _notMet(order, 104 * USD, 0));
        _setPrice(nvda, 106 * USD);
        _raise(order);
        _setPrice(nvda, 102 * USD);
        _execute(order);
        assertEq(_held(id), 0);
    }

    function test_PeaksRiseInABatchThatSkipsWhatCannotRise() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        IOrderBook.Order[] memory orders = new IOrderBook.Order[](3);
        orders[0] = _trail(id, 500);
        _place(orders[0]);
        orders[1] = _trail(id, 300);
        orders[2] = _sale(id, 10_000);
        _setPrice(nvda, 104 * USD);
        orderBook.raisePeaks(orders);
        assertEq(orderBook.orderStateOf(agentId, orderBook.hashOrder(orders[0])).peak, 104 * USD);
        assertEq(orderBook.orderStateOf(agentId, orderBook.hashOrder(orders[1])).peak, 0, "never placed");
    }

    function test_APurchaseInPartsBuysAtMostOnePartPerInterval() public {
        IOrderBook.Order memory order = _inParts(_entry(nvda, 1_000 * USDC), 3, 15 minutes);
        _place(order);
        _execute(order);
        uint256 id = positions.openPositionId(agentId, address(nvda));
        assertEq(positions.getPosition(id).usdcCostBasis, 333_333_333);
        _refuseExecution(
            order,
            abi.encodeWithSelector(
                IOrderBook.OrderNotDue.selector, orderBook.hashOrder(order), block.timestamp + 15 minutes
            )
        );
        skip(15 minutes);
        _execute(order);
        skip(15 minutes);
        _execute(order);
        assertEq(positions.getPosition(id).usdcCostBasis, 1_000 * USDC, "the last part has the rest");
        _refuseExecution(order, _notOpen(order));
    }

    function test_AMissedPartIsNotDoubled() public {
        IOrderBook.Order memory order = _inParts(_entry(nvda, 1_000 * USDC), 4, 15 minutes);
        _place(order);
        _execute(order);
        skip(50 minutes);
        _execute(order);
        assertEq(orderBook.orderStateOf(agentId, orderBook.hashOrder(order)).nextAt, block.timestamp + 15 minutes);
        vm.expectRevert();
        orderBook.executeOrder(order);
    }

    function test_ASaleInPartsSellsEqualParts() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        uint256 held = _held(id);
        IOrderBook.Order memory order = _inParts(_sale(id, 10_000), 4, 1 minutes);
        _place(order);
        for (uint256 left = 4; left > 0; --left) {
            assertApproxEqRel(_held(id), held * left / 4, 1e15);
            _execute(order);
            skip(1 minutes);
        }
        assertEq(_held(id), 0);
    }

    function test_AReductionNeverSellsMoreThanWhatIsLeft() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        IOrderBook.Order memory half = _sale(id, 5_000);
        _place(half);
        IOrderBook.Order memory all = _sale(id, 10_000);
        _place(all);
        _execute(half);
        _execute(all);
        assertEq(_held(id), 0);
    }

    function test_AnOrderDiesWithItsPosition() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        IOrderBook.Order memory order = _sale(id, 10_000);
        _place(order);
        _submit(_reduceIntent(id, 10_000));
        _refuseExecution(order, abi.encodeWithSelector(ITradeRouter.PositionNotOpen.selector, id));
        _endAsDead(order, IOrderBook.OrderEnd.PositionClosed);
        assertEq(orderBook.openOrderCount(agentId), 0);
    }

    function test_AnOrderOfAClosedPositionDoesNotTouchTheNextOne() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        IOrderBook.Order memory order = _sale(id, 10_000);
        _place(order);
        _submit(_reduceIntent(id, 10_000));
        uint256 next = _open(nvda, 1_000 * USDC);
        _refuseExecution(order, abi.encodeWithSelector(ITradeRouter.PositionNotOpen.selector, id));
        assertGt(_held(next), 0);
    }

    function test_APartThatRoundsDownIsMadeUpForByTheNext() public {
        uint256 id = _open(nvda, 5_000 * USDC);
        uint256 held = _held(id);
        IOrderBook.Order memory order = _inParts(_sale(id, 95), 10, 1 minutes);
        _place(order);
        for (uint256 part = 1; part <= 10; ++part) {
            _execute(order);
            skip(1 minutes);
        }
        assertApproxEqAbs(held - _held(id), held * 95 / 10_000, held / 10_000, "95 bps within one");
    }

    function test_APurchaseInPartsEndsWhenItsPositionIsClosed() public {
        IOrderBook.Order memory order = _inParts(_entry(nvda, 1_000 * USDC), 2, 1 minutes);
        _place(order);
        _execute(order);
        uint256 id = positions.openPositionId(agentId, address(nvda));
        _submit(_reduceIntent(id, 10_000));
        skip(1 minutes);
        _refuseExecution(order, abi.encodeWithSelector(ITradeRouter.PositionNotOpen.selector, id));
    }

    function test_AnOrderWaitsForItsTimeAndExpires() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        IOrderBook.Order memory order = _sale(id, 10_000);
        order.validAfter = block.timestamp + 10 minutes;
        order.validUntil = block.timestamp + 20 minutes;
        _place(order);
        _refuseExecution(
            order, abi.encodeWithSelector(IOrderBook.OrderNotDue.selector, orderBook.hashOrder(order), order.validAfter)
        );
        skip(20 minutes + 1);
        _refuseExecution(
            order,
            abi.encodeWithSelector(IOrderBook.OrderExpired.selector, orderBook.hashOrder(order), order.validUntil)
        );
        _endAsDead(order, IOrderBook.OrderEnd.Expired);
    }

    function test_AHeartbeatReplacesTheOrderWithItsKey() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        IOrderBook.Order memory first = _sale(id, 10_000);
        (first.key, first.validAfter) = (7, block.timestamp + 10 minutes);
        _place(first);
        skip(5 minutes);
        IOrderBook.Order memory second = _sale(id, 10_000);
        (second.key, second.validAfter) = (7, block.timestamp + 10 minutes);
        _expectEnd(first, IOrderBook.OrderEnd.Replaced);
        _place(second);
        assertEq(orderBook.openOrderCount(agentId), 1);
        skip(6 minutes);
        _refuseExecution(first, _notOpen(first));
        skip(4 minutes);
        _execute(second);
        assertEq(_held(id), 0);
    }

    function test_ATimeExitNeverRemovesAStop() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        _place(_sale(id, 5_000));
        IOrderBook.Order memory order = _sale(id, 5_000);
        _place(order);
        _execute(order);
        assertEq(positions.getExitRules(id).length, 3);
        assertEq(positions.getPosition(id).nextRuleIndex, 0);
        _setPrice(nvda, 92 * USD);
        _exit(id);
        assertEq(_held(id), 0);
    }

    function test_TheTwentyFirstOrderIsRefused() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        for (uint256 i; i < 20; ++i) {
            _place(_sale(id, 10_000));
        }
        _refusePlacing(_sale(id, 10_000), abi.encodeWithSelector(IOrderBook.TooManyOpenOrders.selector, agentId, 20));
    }

    function test_AHeartbeatPassesWithTwentyOpenOrders() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        IOrderBook.Order memory order = _sale(id, 10_000);
        order.key = 1;
        _place(order);
        for (uint256 i; i < 19; ++i) {
            _place(_sale(id, 10_000));
        }
        order.validAfter = block.timestamp + 1;
        _place(order);
        assertEq(orderBook.openOrderCount(agentId), 20);
    }

    function test_AnOrderToOpenWaitsWhileTheAgentHasAnotherPositionInTheToken() public {
        IOrderBook.Order memory order = _entry(nvda, 1_000 * USDC);
        _place(order);
        uint256 id = _open(nvda, 1_000 * USDC);
        _refuseExecution(
            order, abi.encodeWithSelector(ITradeRouter.PositionAlreadyOpen.selector, agentId, address(nvda))
        );
        _submit(_reduceIntent(id, 10_000));
        _execute(order);
    }

    function test_PlacingIsBoundByADeadline() public {
        _useDefaultLimits();
        IOrderBook.Order memory order = _entry(nvda, 1_000 * USDC);
        order.deadline = block.timestamp - 1;
        _refusePlacing(order, abi.encodeWithSelector(ITradeRouter.ExpiredDeadline.selector));
        order.deadline = block.timestamp + 30 days + 1;
        _refusePlacing(
            order,
            abi.encodeWithSelector(ITradePolicy.DeadlineTooFar.selector, order.deadline, block.timestamp + 30 days)
        );
    }

    function test_ADeadOrderMakesRoomAndALivingOneIsSkipped() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        IOrderBook.Order memory living = _sale(id, 10_000);
        _place(living);
        orderBook.endDeadOrders(_just(living));
        assertTrue(_isOpen(living));
    }

    function test_AReductionPaysTheBountyOfAnExitAndAPurchaseNone() public {
        IOrderBook.Order memory order = _entry(nvda, 10_000 * USDC);
        _place(order);
        _execute(order);
        assertEq(usdc.balanceOf(keeper), 0);
        uint256 id = positions.openPositionId(agentId, address(nvda));
        order = _sale(id, 2_000);
        _place(order);
        uint256 kept = _execute(order);
        uint256 bounty = usdc.balanceOf(keeper);
        assertApproxEqAbs(bounty, (kept + bounty) * 10 / 10_000, 1);
        order = _sale(id, 10_000);
        _place(order);
        _execute(order);
        assertLe(usdc.balanceOf(keeper), 5 * USDC, "at most the day's maximum");
    }

    function test_ASignedReductionPaysNoBounty() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        _submit(_reduceIntent(id, 10_000));
        assertEq(usdc.balanceOf(executor), 0);
    }

    function test_OrdersWorkOnPaper() public {
        vm.prank(admin);
        tracks.setVaultTrackCapitalMode(address(vault), 0, uint8(IVaultTrackRegistry.CapitalMode.Simulated));
        agentId = _register(vm.addr(signerKey));
        uint256 idle = vault.idleAssets();
        IOrderBook.Order memory order = _at(_entry(nvda, 1_000 * USDC), BELOW, 100 * USD);
        _place(order);
        _setPrice(nvda, 100 * USD);
        _execute(order);
        uint256 id = positions.openPositionId(agentId, address(nvda));
        order = _trail(id, 500);
        _place(order);
        _setPrice(nvda, 95 * USD);
        _execute(order);
        assertEq(_held(id), 0);
        assertEq(vault.idleAssets(), idle);
        assertEq(usdc.balanceOf(keeper), 0);
    }

    function test_FloorsFollowTheOracleOfTheMoment() public {
        IOrderBook.Order memory order = _at(_entry(nvda, 1_000 * USDC), BELOW, 100 * USD);
        _place(order);
        _setPrice(nvda, 50 * USD);
        _execute(order);
        uint256 id = positions.openPositionId(agentId, address(nvda));
        assertGt(_held(id), 1_000e18 * 99 / 50 / 100);
    }

    function test_WrongContentIsRefusedWithTheFieldAndItsValue() public {
        uint256 id = _open(tsla, 1_000 * USDC);
        IOrderBook.Order memory order = _entry(nvda, 1_000 * USDC);
        order.side = 3;
        _refuseField(order, 1, 3);
        order = _entry(nvda, 1_000 * USDC);
        order.token = address(0);
        _refuseField(order, 2, 0);
        order = _entry(nvda, 1_000 * USDC);
        order.positionId = id;
        _refuseField(order, 3, id);
        _refuseField(_entry(nvda, 0), 4, 0);
        _refuseField(_sale(id, 0), 5, 0);
        _refuseField(_sale(id, 10_001), 5, 10_001);
        order = _entry(nvda, 1_000 * USDC);
        order.exits = new IPositionManager.ExitRule[](0);
        _refuseField(order, 6, 0);
        order = _sale(id, 100);
        order.maxSlippageBps = 1;
        _refuseField(order, 7, 1);
        order = _entry(nvda, 1_000 * USDC);
        (order.condition, order.trailBps) = (TRAILING, 100);
        _refuseField(order, 8, TRAILING);
        _refuseField(_at(_sale(id, 100), BELOW, 0), 9, 0);
        _refuseField(_at(_sale(id, 100), NONE, 1), 9, 1);
        _refuseField(_trail(id, 0), 10, 0);
        _refuseField(_trail(id, 10_000), 10, 10_000);
    }

    function test_WrongTimesAndPartsAreRefused() public {
        uint256 id = _open(tsla, 1_000 * USDC);
        IOrderBook.Order memory order = _sale(id, 100);
        order.validUntil = block.timestamp - 1;
        _refuseField(order, 12, block.timestamp - 1);
        order = _sale(id, 100);
        order.validAfter = order.validUntil + 1;
        _refuseField(order, 11, order.validAfter);
        _refuseField(_inParts(_sale(id, 100), 0, 0), 13, 0);
        _refuseField(_inParts(_sale(id, 1_000), 101, 60), 13, 101);
        _refuseField(_inParts(_sale(id, 100), 1, 60), 14, 60);
        _refuseField(_inParts(_sale(id, 100), 2, 59), 14, 59);
    }

    function test_AnOrderAtItsBoundsIsPlacedAndOneBeyondIsRefused() public {
        uint256 id = _open(tsla, 1_000 * USDC);
        uint256 now_ = block.timestamp;
        IOrderBook.Order memory order = _inParts(_entry(nvda, 100), 100, 1 minutes);
        order.maxSlippageBps = 10_000;
        order.exits = new IPositionManager.ExitRule[](5);
        order.validUntil = now_ + 1 minutes;
        order.validAfter = order.validUntil;
        order.deadline = now_;
        _place(order);
        _refuseField(_inParts(_entry(nvda, 99), 100, 1 minutes), 4, 99);
        order.exits = new IPositionManager.ExitRule[](6);
        _refuseField(order, 6, 6);
        order = _entry(nvda, 100);
        order.maxSlippageBps = 10_001;
        _refuseField(order, 7, 10_001);

        order = _inParts(_sale(id, 100), 100, 2 minutes);
        order.validUntil = now_ + 2 minutes;
        _place(order);
        order.validUntil -= 1;
        _refuseField(order, 14, 2 minutes);
        _refuseField(_inParts(_sale(id, 99), 100, 2 minutes), 5, 99);
        order = _sale(id, 1);
        order.validUntil = now_;
        _place(order);
        order.validUntil = type(uint40).max;
        _place(order);
        order.validUntil = uint256(type(uint40).max) + 1;
        _refuseField(order, 12, order.validUntil);
        _place(_at(_sale(id, 100), ABOVE, type(uint96).max));
        _refuseField(_at(_sale(id, 100), ABOVE, uint256(type(uint96).max) + 1), 9, uint256(type(uint96).max) + 1);
        _refuseField(_at(_trail(id, 100), TRAILING, uint256(type(uint96).max) + 1), 9, uint256(type(uint96).max) + 1);
        _place(_trail(id, 1));
        _place(_trail(id, 9_999));
        _refuseField(_at(_sale(id, 100), 4, 0), 8, 4);
    }

    function test_AFieldThatTheSideOrTheConditionDoesNotHaveIsRefused() public {
        uint256 id = _open(tsla, 1_000 * USDC);
        IOrderBook.Order memory order = _entry(nvda, 1_000 * USDC);
        order.side = ADD;
        _refuseField(order, 3, 0);
        order = _entry(nvda, 1_000 * USDC);
        order.exitBps = 1;
        _refuseField(order, 5, 1);
        order = _addition(id, 1_000 * USDC);
        order.exits = _threeRules();
        _refuseField(order, 6, 3);
        order = _sale(id, 100);
        order.usdcAmount = 1;
        _refuseField(order, 4, 1);
        order = _sale(id, 100);
        order.trailBps = 1;
        _refuseField(order, 10, 1);
    }

    function test_AnOrderExecutesFromItsFirstSecondToItsLast() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        IOrderBook.Order memory order = _sale(id, 5_000);
        order.validAfter = block.timestamp + 1 minutes;
        order.validUntil = order.validAfter;
        _place(order);
        IOrderBook.Order memory other = _sale(id, 10_000);
        (other.validAfter, other.validUntil) = (order.validAfter, order.validUntil);
        _place(other);
        skip(1 minutes);
        orderBook.endDeadOrders(_just(order));
        _execute(order);
        skip(1);
        _endAsDead(other, IOrderBook.OrderEnd.Expired);
    }

    function test_AnOrderIsCancelledUpToTheDeadlineOfTheMessage() public {
        bytes32 orderId = _place(_entry(nvda, 1_000 * USDC));
        (IOrderBook.CancelOrderIntent memory intent, bytes memory signature) = _cancelIntent(orderId, signerKey);
        vm.warp(intent.deadline + 1);
        vm.expectRevert(ITradeRouter.ExpiredDeadline.selector);
        orderBook.cancelOrder(intent, signature);
        vm.warp(intent.deadline);
        orderBook.cancelOrder(intent, signature);
        assertEq(orderBook.openOrderCount(agentId), 0);
    }

    function test_APeakIsRaisedByAHigherPriceOfALaterSecondAlone() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        IOrderBook.Order memory order = _trail(id, 500);
        _place(order);
        _setOraclePrice(nvda, 101 * USD);
        _raise(order);
        assertEq(_peakOf(order), 100 * USD, "observed in the second of placing");
        _setPrice(nvda, 102 * USD);
        _raise(order);
        assertEq(_peakOf(order), 102 * USD);
        vm.recordLogs();
        _raise(order);
        assertEq(vm.getRecordedLogs().length, 0, "the same price raises nothing");
    }

    function test_ATrailingStopIsActiveFromItsActivationPriceOn() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        IOrderBook.Order memory atOnce = _at(_trail(id, 500), TRAILING, 100 * USD);
        _place(atOnce);
        assertEq(_peakOf(atOnce), 100 * USD);
        IOrderBook.Order memory later = _at(_trail(id, 500), TRAILING, 104 * USD);
        _place(later);
        assertEq(_peakOf(later), 0);
        _setPrice(nvda, 104 * USD);
        _raise(later);
        assertEq(_peakOf(later), 104 * USD);
    }

    function _peakOf(IOrderBook.Order memory order) private view returns (uint256) {
        return orderBook.orderStateOf(agentId, orderBook.hashOrder(order)).peak;
    }

    function _refuseField(IOrderBook.Order memory order, uint256 field, uint256 value) private {
        order.nonce = router.nonces(agentId);
        _refusePlacing(order, abi.encodeWithSelector(IOrderBook.InvalidOrder.selector, field, value));
    }
}
