// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {stdStorage, StdStorage} from "forge-std/Test.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {OrderBook} from "../../src/OrderBook.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {IOrderBook} from "../../src/interfaces/IOrderBook.sol";
import {IOwnerControls} from "../../src/interfaces/IOwnerControls.sol";
import {IPriceOracle} from "../../src/interfaces/IPriceOracle.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {HookToken} from "../vault/Reentrancy.t.sol";
import {OrderTest} from "./OrderTest.sol";

/// @notice A venue that calls back into the book while it swaps
contract ReentrantAdapter {
    address private immutable _book;
    bytes private _call;

    constructor(address book, bytes memory call) {
        (_book, _call) = (book, call);
    }

    fallback() external {
        (, bytes memory data) = _book.call(_call);
        assembly ("memory-safe") {
            revert(add(data, 32), mload(data))
        }
    }
}

/// @notice Somebody with a flash loan, a malicious keeper, a malicious owner, a stolen key: what each of them tries
contract OrderAttacksTest is OrderTest {
    using stdStorage for StdStorage;

    uint256 private id;

    function setUp() public override {
        super.setUp();
        id = _open(nvda, 5_000 * USDC);
    }

    function test_AFlashLoanThatMovesThePoolFiresNothing() public {
        IOrderBook.Order memory order = _at(_sale(id, 10_000), BELOW, 95 * USD);
        _place(order);
        _setPrice(nvda, 100 * USD);
        market.moveTo(address(nvda), 80 * USD);
        _refuseExecution(order, _notMet(order, 100 * USD, 95 * USD));
        _raise(order);
    }

    function test_AFlashLoanRaisesNoPeak() public {
        IOrderBook.Order memory order = _trail(id, 500);
        _place(order);
        _setPrice(nvda, 100 * USD);
        market.moveTo(address(nvda), 200 * USD);
        _raise(order);
        assertEq(orderBook.orderStateOf(agentId, orderBook.hashOrder(order)).peak, 100 * USD);
    }

    function test_AFlashLoanBeforeAnExecutionMeetsTheOraclesFloor() public {
        IOrderBook.Order memory order = _sale(id, 10_000);
        _place(order);
        market.moveTo(address(nvda), 90 * USD);
        vm.expectRevert();
        orderBook.executeOrder(order);
        assertTrue(_isOpen(order));
    }

    function test_ASignedOrderIsPlacedOnce() public {
        IOrderBook.Order memory order = _sale(id, 5_000);
        uint256 nonce = router.nonces(agentId);
        _place(order);
        bytes memory signature = _sign(signerKey, _orderDigest(order));
        _refuseCall(
            abi.encodeCall(orderBook.placeOrder, (order, signature)),
            abi.encodeWithSelector(ITradeRouter.InvalidNonce.selector, nonce + 1, order.nonce)
        );
    }

    function test_APartIsExecutedOnceByTwoKeepers() public {
        IOrderBook.Order memory order = _sale(id, 5_000);
        _place(order);
        uint256 held = _held(id);
        _execute(order);
        vm.prank(makeAddr("other keeper"));
        vm.expectRevert(_notOpen(order));
        orderBook.executeOrder(order);
        assertApproxEqAbs(_held(id), held / 2, 1);
    }

    function test_AKeeperCannotChangeTheContent() public {
        IOrderBook.Order memory order = _at(_sale(id, 5_000), BELOW, 50 * USD);
        _place(order);
        order.price = 200 * USD;
        _refuseExecution(order, _notOpen(order));
    }

    function test_AStrangerPlacesNothing() public {
        IOrderBook.Order memory order = _sale(id, 5_000);
        bytes memory signature = _sign(0xBAD, _orderDigest(order));
        _refuseCall(
            abi.encodeCall(orderBook.placeOrder, (order, signature)),
            abi.encodeWithSelector(ITradeRouter.InvalidSignature.selector)
        );
    }

    function test_AnAgentOrdersNothingForThePositionOfAnother() public {
        (uint256 victim, uint256 key) = (agentId, signerKey);
        signerKey = 0xB0B;
        agentId = _register(vm.addr(signerKey));
        IOrderBook.Order memory order = _sale(id, 10_000);
        _refusePlacing(order, abi.encodeWithSelector(ITradeRouter.PositionAgentMismatch.selector, id, agentId));
        order.agentId = victim;
        order.nonce = router.nonces(victim);
        bytes memory signature = _sign(signerKey, _orderDigest(order));
        _refuseCall(
            abi.encodeCall(orderBook.placeOrder, (order, signature)),
            abi.encodeWithSelector(ITradeRouter.InvalidSignature.selector)
        );
        signerKey = key;
    }

    function test_AnAgentCancelsNoOrderOfAnother() public {
        IOrderBook.Order memory order = _sale(id, 10_000);
        bytes32 orderId = _place(order);
        uint256 victim = agentId;
        signerKey = 0xB0B;
        agentId = _register(vm.addr(signerKey));
        (IOrderBook.CancelOrderIntent memory intent, bytes memory signature) = _cancelIntent(orderId, signerKey);
        _refuseCall(
            abi.encodeCall(orderBook.cancelOrder, (intent, signature)),
            abi.encodeWithSelector(IOrderBook.OrderNotOpen.selector, orderId)
        );
        assertGt(orderBook.orderStateOf(victim, orderId).placedAt, 0);
    }

    function test_AMinedCancelWinsAgainstEveryLaterBlock() public {
        IOrderBook.Order memory order = _sale(id, 10_000);
        bytes32 orderId = _place(order);
        _cancel(orderId);
        _refuseExecution(order, abi.encodeWithSelector(IOrderBook.OrderNotOpen.selector, orderId));
        (IOrderBook.CancelOrderIntent memory intent, bytes memory signature) = _cancelIntent(orderId, signerKey);
        _refuseCall(
            abi.encodeCall(orderBook.cancelOrder, (intent, signature)),
            abi.encodeWithSelector(IOrderBook.OrderNotOpen.selector, orderId)
        );
    }

    /// @dev A reorg undoes the cancel and mines the execution first: then the cancel comes too late and changes nothing.
    function test_AfterAReorgExactlyOneOfCancelAndExecutionTakesEffect() public {
        IOrderBook.Order memory order = _sale(id, 10_000);
        bytes32 orderId = _place(order);
        (IOrderBook.CancelOrderIntent memory intent, bytes memory signature) = _cancelIntent(orderId, signerKey);
        uint256 snapshot = vm.snapshotState();
        orderBook.cancelOrder(intent, signature);
        assertGt(_held(id), 0);
        vm.revertToState(snapshot);
        _execute(order);
        assertEq(_held(id), 0);
        _refuseCall(
            abi.encodeCall(orderBook.cancelOrder, (intent, signature)),
            abi.encodeWithSelector(IOrderBook.OrderNotOpen.selector, orderId)
        );
    }

    function test_NothingFiresOnAStalePrice() public {
        IOrderBook.Order memory order = _at(_sale(id, 10_000), BELOW, 100 * USD);
        _place(order);
        _setPrice(nvda, 90 * USD);
        uint256 updatedAt = block.timestamp;
        skip(1 hours + 1);
        bytes memory stale = abi.encodeWithSelector(IPriceOracle.StalePrice.selector, address(nvda), updatedAt, 1 hours);
        _refuseExecution(order, stale);
        assertEq(orderBook.waitsFor(order), stale);
    }

    function test_NoPeakRisesInAClosedSession() public {
        IOrderBook.Order memory order = _trail(id, 500);
        _place(order);
        _setPrice(nvda, 120 * USD);
        skip(1 hours + 1);
        _raise(order);
        assertEq(orderBook.orderStateOf(agentId, orderBook.hashOrder(order)).peak, 100 * USD);
    }

    function test_ATimeExitWaitsForTheMarketToOpen() public {
        IOrderBook.Order memory order = _sale(id, 10_000);
        _place(order);
        skip(2 hours);
        vm.expectRevert();
        orderBook.executeOrder(order);
        _setPrice(nvda, 100 * USD);
        _execute(order);
        assertEq(_held(id), 0);
    }

    function test_ANewOwnerEndsAllOrders() public {
        IOrderBook.Order memory sale = _sale(id, 10_000);
        _place(sale);
        IOrderBook.Order memory entry = _entry(tsla, 1_000 * USDC);
        _place(entry);
        vm.prank(agents.ownerOf(agentId));
        agents.transferAgentOwnership(agentId, newOwner);
        _refuseExecution(sale, _error(IOrderBook.OrderIsVoid.selector, sale));
        _refuseExecution(entry, _error(IOrderBook.OrderIsVoid.selector, entry));
        _endAsDead(sale, IOrderBook.OrderEnd.Voided);
    }

    function test_ANewSignerEndsTheOrdersOfAStolenKey() public {
        IOrderBook.Order memory sale = _sale(id, 10_000);
        _place(sale);
        _setSigner(newSignerKey);
        _refuseExecution(sale, _error(IOrderBook.OrderIsVoid.selector, sale));
        assertEq(positions.getExitRules(id).length, 3, "the ladder stays");
        signerKey = newSignerKey;
        IOrderBook.Order memory next = _sale(id, 10_000);
        _place(next);
        _execute(next);
    }

    function test_TheOldKeyPlacesNothing() public {
        _setSigner(newSignerKey);
        _refusePlacing(_sale(id, 10_000), abi.encodeWithSelector(ITradeRouter.InvalidSignature.selector));
    }

    function test_AnExecutorCannotTradeWithoutAnOrderUnderExecution() public {
        ITradeRouter.ReducePositionIntent memory intent = _reduceIntent(id, 10_000);
        intent.nonce = type(uint256).max;
        vm.expectRevert(
            abi.encodeWithSelector(ITradeRouter.InvalidNonce.selector, router.nonces(agentId), type(uint256).max)
        );
        vm.prank(executor);
        router.reducePosition(intent, "");
    }

    function test_NobodyButTheRouterAndTheBookUsesUpANonce() public {
        vm.expectRevert(abi.encodeWithSignature("OnlyTradeRouter(address)", address(this)));
        allocations.authorize(agentId, 0, bytes32(0), "", false);
    }

    function test_AnOrderWithTheNonceOfExecutionsIsNotPlaced() public {
        IOrderBook.Order memory order = _sale(id, 10_000);
        order.nonce = type(uint256).max;
        _refusePlacing(
            order, abi.encodeWithSelector(ITradeRouter.InvalidNonce.selector, router.nonces(agentId), type(uint256).max)
        );
    }

    function test_AnExecutionUsesNoNonce() public {
        IOrderBook.Order memory order = _sale(id, 5_000);
        _place(order);
        ITradeRouter.ReducePositionIntent memory signed = _reduceIntent(id, 5_000);
        _execute(order);
        _submit(signed);
    }

    function test_AVenueThatCallsBackIsRefused() public {
        IOrderBook.Order memory order = _sale(id, 5_000);
        _place(order);
        bytes memory call = abi.encodeCall(orderBook.executeOrder, (order));
        address evil = address(new ReentrantAdapter(address(orderBook), call));
        vm.prank(admin);
        router.setSwapAdapter(evil);
        uint256 held = _held(id);
        vm.expectRevert(abi.encodeWithSignature("ReentrancyGuardReentrantCall()"));
        orderBook.executeOrder(order);
        assertEq(_held(id), held);
        _assertIdle();
    }

    function test_AReplacedRouterIsFollowed() public {
        assertEq(orderBook.tradeRouter(), address(router));
        vm.prank(admin);
        allocations.setTradeRouter(address(this));
        assertEq(orderBook.tradeRouter(), address(this));
    }

    function test_APausedVaultRefusesBothSides() public {
        IOrderBook.Order memory sale = _sale(id, 10_000);
        _place(sale);
        _pauseTrading(true);
        _refuseExecution(sale, abi.encodeWithSelector(IMandateVault.TradingPaused.selector));
        _pauseTrading(false);
        _execute(sale);
    }

    function test_OneBadOrderDoesNotBlockTheRestOfABatch() public {
        IOrderBook.Order[] memory orders = new IOrderBook.Order[](2);
        orders[0] = _sale(id, 10_000);
        orders[0].agentId = 999;
        orders[1] = _trail(id, 500);
        _place(orders[1]);
        _setPrice(nvda, 110 * USD);
        orderBook.raisePeaks(orders);
        assertEq(orderBook.orderStateOf(agentId, orderBook.hashOrder(orders[1])).peak, 110 * USD);
        orderBook.endDeadOrders(orders);
    }

    function test_APriceObservedBeforeTheOrderAndPostedAfterItFiresNothing() public {
        skip(10);
        uint64 earlier = uint64(block.timestamp - 5);
        IOrderBook.Order memory order = _at(_sale(id, 10_000), BELOW, 95 * USD);
        _place(order);
        uint256 placedAt = block.timestamp;
        skip(5);
        _post(90 * USD, earlier);
        _refuseExecution(
            order,
            abi.encodeWithSelector(
                IOrderBook.PriceBeforeOrder.selector, orderBook.hashOrder(order), uint256(earlier), placedAt
            )
        );
    }

    function test_APeakBeforeTheOrderThatIsPostedAfterItCountsNothing() public {
        skip(10);
        uint64 earlier = uint64(block.timestamp - 5);
        IOrderBook.Order memory order = _trail(id, 500);
        _place(order);
        skip(5);
        _post(120 * USD, earlier);
        _raise(order);
        assertEq(_peakOf(order), 100 * USD);
    }

    function test_APriceThatNobodyRaisedInTimeIsNotClaimedLater() public {
        IOrderBook.Order memory order = _trail(id, 500);
        _place(order);
        _setPrice(nvda, 130 * USD);
        _setPrice(nvda, 105 * USD);
        _raise(order);
        assertEq(_peakOf(order), 105 * USD);
        order.price = 130 * USD;
        _raise(order);
        order.price = 0;
        assertEq(_peakOf(order), 105 * USD);
        _refuseExecution(order, _notMet(order, 105 * USD, 9_975_000_000));
    }

    function test_APartIsNotExecutedTwiceInABlock() public {
        IOrderBook.Order memory order = _inParts(_sale(id, 10_000), 4, 1 minutes);
        _place(order);
        uint256 held = _held(id);
        (bool[] memory executed, bytes[] memory reasons) = _executeAll(_twice(order));
        assertTrue(executed[0]);
        assertFalse(executed[1]);
        assertEq(
            reasons[1],
            abi.encodeWithSelector(
                IOrderBook.OrderNotDue.selector, orderBook.hashOrder(order), block.timestamp + 1 minutes
            )
        );
        assertApproxEqAbs(_held(id), held * 3 / 4, 1);
    }

    function test_TheLastPartIsNotReplayed() public {
        IOrderBook.Order memory order = _inParts(_sale(id, 2_000), 2, 1 minutes);
        _place(order);
        _execute(order);
        skip(1 minutes);
        (bool[] memory executed, bytes[] memory reasons) = _executeAll(_twice(order));
        assertTrue(executed[0]);
        assertEq(reasons[1], _notOpen(order));
        skip(1 minutes);
        _refuseExecution(order, _notOpen(order));
        assertEq(orderBook.openOrderCount(agentId), 0);
    }

    function test_AnEndedOrderIsNotPlacedAgainAlthoughItsSlotIsFree() public {
        IOrderBook.Order memory order = _sale(id, 5_000);
        bytes32 orderId = _place(order);
        bytes memory signature = _sign(signerKey, _orderDigest(order));
        _cancel(orderId);
        _refuseCall(
            abi.encodeCall(orderBook.placeOrder, (order, signature)),
            abi.encodeWithSelector(ITradeRouter.InvalidNonce.selector, router.nonces(agentId), order.nonce)
        );
    }

    function test_ATokenThatBurnsAllGasStopsNoOtherOrderOfItsBatch() public {
        uint256 other = _open(tsla, 5_000 * USDC);
        IOrderBook.Order[] memory orders = new IOrderBook.Order[](3);
        orders[0] = _sale(id, 5_000);
        _place(orders[0]);
        orders[1] = _sale(id, 10_000);
        _place(orders[1]);
        orders[2] = _sale(other, 10_000);
        _place(orders[2]);
        vm.etch(address(nvda), hex"5b600056"); // an endless loop
        vm.prank(keeper);
        (bool[] memory executed,) = orderBook.executeOrders{gas: 10_000_000}(orders);
        assertFalse(executed[0]);
        assertFalse(executed[1]);
        assertTrue(executed[2]);
        assertEq(_held(other), 0);
        assertTrue(_isOpen(orders[0]));
    }

    function test_AKeeperThatGivesTooLittleGasChangesNothing() public {
        IOrderBook.Order memory order = _sale(id, 10_000);
        _place(order);
        for (uint256 gas = 60_000; gas < 300_000; gas += 7_919) {
            uint256 snapshot = vm.snapshotState();
            vm.prank(keeper);
            (bool success, bytes memory result) =
                address(orderBook).call{gas: gas}(abi.encodeCall(orderBook.executeOrders, (_just(order))));
            bool isExecuted;
            if (success) {
                (bool[] memory executed,) = abi.decode(result, (bool[], bytes[]));
                isExecuted = executed[0];
            }
            assertEq(isExecuted, _held(id) == 0, "sold in part");
            assertEq(isExecuted, !_isOpen(order), "ended without a sale");
            _assertIdle();
            vm.revertToState(snapshot);
        }
    }

    function test_OnlyTheBookCallsForOneOfABatch() public {
        IOrderBook.Order memory order = _sale(id, 5_000);
        vm.expectRevert(abi.encodeWithSelector(IOrderBook.OnlySelf.selector, address(this)));
        orderBook.executeOrderFor(order, address(this));
    }

    function test_ABatchPaysItsSenderTheBounties() public {
        IOrderBook.Order memory order = _sale(id, 10_000);
        _place(order);
        _executeAll(_just(order));
        assertGt(usdc.balanceOf(keeper), 0);
        assertEq(usdc.balanceOf(address(orderBook)), 0);
    }

    function test_ATokenThatCallsBackDuringAnExecutionReachesNoTrade() public {
        HookToken hook = _hook();
        uint256 position = _open(hook, 1_000 * USDC);
        IOrderBook.Order memory other = _sale(id, 10_000);
        _place(other);
        ITradeRouter.ReducePositionIntent memory unsigned = _reduceIntent(id, 10_000);
        unsigned.nonce = type(uint256).max;
        bytes32 executorRole = router.EXECUTOR_ROLE();
        vm.prank(admin);
        router.grantRole(executorRole, address(hook));
        (address book, address venue) = (address(orderBook), address(router));
        _expectNoReentrance(hook, position, book, abi.encodeCall(orderBook.executeOrder, (other)));
        _expectNoReentrance(hook, position, book, abi.encodeCall(orderBook.executeOrders, (_just(other))));
        _expectNoReentrance(hook, position, book, abi.encodeCall(orderBook.raisePeaks, (_just(other))));
        _expectNoReentrance(hook, position, book, abi.encodeCall(orderBook.endDeadOrders, (_just(other))));
        _expectNoReentrance(hook, position, venue, abi.encodeCall(router.reducePosition, (unsigned, "")));
        assertTrue(_isOpen(other));
    }

    function test_AnOrderDoesNotExecuteInTheMiddleOfASignedTrade() public {
        HookToken hook = _hook();
        uint256 position = _open(hook, 1_000 * USDC);
        IOrderBook.Order memory other = _sale(id, 10_000);
        _place(other);
        hook.arm(address(orderBook), abi.encodeCall(orderBook.executeOrder, (other)));
        _submit(_reduceIntent(position, 5_000));
        assertEq(hook.reason(), abi.encodeWithSelector(ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector));
        assertTrue(_isOpen(other));
    }

    function test_AnOrderNamesTheTokenOfItsPosition() public {
        IOrderBook.Order memory order = _at(_sale(id, 10_000), BELOW, 400 * USD);
        order.token = address(tsla);
        _refusePlacing(
            order, abi.encodeWithSelector(IOrderBook.PositionTokenMismatch.selector, id, address(nvda), address(tsla))
        );
    }

    function test_TwentyOpenOrdersOfOneAgentLeaveAnotherItsPlaces() public {
        for (uint256 i; i < 20; ++i) {
            _place(_sale(id, 10_000));
        }
        signerKey = 0xB0B;
        agentId = _register(vm.addr(signerKey));
        IOrderBook.Order memory order = _entry(tsla, 1_000 * USDC);
        _place(order);
        _execute(order);
    }

    function test_TwentyOpenOrdersDelayNoStopAndNoExit() public {
        IOrderBook.Order[] memory orders = new IOrderBook.Order[](20);
        for (uint256 i; i < 20; ++i) {
            orders[i] = _entry(tsla, 1_000 * USDC);
            _place(orders[i]);
        }
        _stopBuying();
        (bool[] memory executed, bytes[] memory reasons) = _executeAll(orders);
        for (uint256 i; i < 20; ++i) {
            assertFalse(executed[i]);
            assertEq(reasons[i], _error(IOrderBook.OrderIsVoid.selector, orders[i]));
        }
        _setPrice(nvda, 91 * USD);
        _exit(id);
        assertEq(_held(id), 0);
        orderBook.endDeadOrders(orders);
        assertEq(orderBook.openOrderCount(agentId), 0);
    }

    function test_VoidOrdersHoldNoPlaces() public {
        IOrderBook.Order[] memory orders = new IOrderBook.Order[](20);
        for (uint256 i; i < 20; ++i) {
            orders[i] = _entry(tsla, 1_000 * USDC);
            _place(orders[i]);
        }
        _refusePlacing(_sale(id, 10_000), abi.encodeWithSelector(IOrderBook.TooManyOpenOrders.selector, agentId, 20));
        _stopBuying();
        assertEq(orderBook.openOrderCount(agentId), 0);
        IOrderBook.Order memory sale = _sale(id, 10_000);
        _place(sale);
        assertEq(orderBook.openOrderCount(agentId), 1);
        vm.prank(makeAddr("anybody"));
        orderBook.endDeadOrders(orders);
        assertEq(orderBook.openOrderCount(agentId), 1);
        _execute(sale);
        assertEq(orderBook.openOrderCount(agentId), 0);
    }

    function test_EndingAVoidOrderFreesNoPlaceOfALivingOne() public {
        IOrderBook.Order memory replaced = _entry(tsla, 1_000 * USDC);
        replaced.key = 1;
        _place(replaced);
        IOrderBook.Order memory dead = _entry(tsla, 1_000 * USDC);
        bytes32 cancelled = _place(_entry(tsla, 1_000 * USDC));
        _place(dead);
        _stopBuying();
        _setMandate(_mandate(TRADE));
        for (uint256 i; i < 19; ++i) {
            _place(i % 2 == 0 ? _entry(tsla, 1_000 * USDC) : _sale(id, 100));
        }
        _cancel(cancelled);
        _endAsDead(dead, IOrderBook.OrderEnd.Voided);
        assertEq(orderBook.openOrderCount(agentId), 19);
        IOrderBook.Order memory next = _entry(tsla, 1_000 * USDC);
        next.key = 1;
        _place(next);
        assertEq(orderBook.openOrderCount(agentId), 20);
        _refusePlacing(_sale(id, 10_000), abi.encodeWithSelector(IOrderBook.TooManyOpenOrders.selector, agentId, 20));
    }

    function test_WithoutABookAgentsTradeAndOrdersAreRefused() public {
        IOrderBook.Order memory sale = _sale(id, 5_000);
        _place(sale);
        stdstore.target(address(agents)).sig("orderBook()").checked_write(address(0));
        _refuseExecution(
            sale, abi.encodeWithSelector(ITradeRouter.InvalidNonce.selector, router.nonces(agentId), type(uint256).max)
        );
        _refusePlacing(_sale(id, 5_000), abi.encodeWithSignature("OnlyTradeRouter(address)", address(orderBook)));
        uint256 other = _open(tsla, 1_000 * USDC);
        _submit(_addIntent(other, 500 * USDC));
        _submit(_updateIntent(other, _threeRules()));
        _submit(_reduceIntent(other, 10_000));
        _stopBuying();
        _setPrice(nvda, 80 * USD);
        _exit(id);
        assertEq(_held(id) + _held(other), 0);
    }

    function test_AnEntryThatWasPlacedOnPaperNeverBuysWithRealCapital() public {
        vm.prank(admin);
        tracks.setVaultTrackCapitalMode(address(vault), 0, uint8(IVaultTrackRegistry.CapitalMode.Simulated));
        agentId = _register(vm.addr(signerKey));
        IOrderBook.Order memory entry = _entry(tsla, 1_000 * USDC);
        _place(entry);
        uint256 idle = vault.idleAssets();
        _toFunded();
        assertEq(allocations.capitalModeOf(agentId), uint8(IVaultTrackRegistry.CapitalMode.Real));
        _refuseExecution(entry, _error(IOrderBook.OrderIsVoid.selector, entry));
        assertEq(vault.idleAssets(), idle);
        IOrderBook.Order memory next = _entry(tsla, 1_000 * USDC);
        _place(next);
        _execute(next);
        assertLt(vault.idleAssets(), idle);
    }

    function test_APromotionEndsOrdersThatBuyAndKeepsThoseThatSell() public {
        IOrderBook.Order memory addition = _inParts(_addition(id, 200 * USDC), 2, 1 minutes);
        _place(addition);
        _execute(addition);
        IOrderBook.Order memory sale = _sale(id, 10_000);
        _place(sale);
        _toFunded();
        skip(1 minutes);
        _refuseExecution(addition, _error(IOrderBook.OrderIsVoid.selector, addition));
        _execute(sale);
        assertEq(_held(id), 0);
    }

    function test_AnAgentThatExecutesItsOwnOrdersFarmsAtMostTheDaysBounty() public {
        for (uint256 i; i < 40; ++i) {
            IOrderBook.Order memory order = _sale(id, 1_000);
            _place(order);
            _execute(order);
            if (i % 5 == 4) _submit(_addIntent(id, 4_000 * USDC));
        }
        assertLe(usdc.balanceOf(keeper), 5 * USDC);
        _setPrice(nvda, 80 * USD);
        _exit(id);
        assertLe(usdc.balanceOf(keeper), 5 * USDC, "exits and orders share the day's maximum");
        assertEq(_held(id), 0, "an exit needs no bounty");
    }

    function test_ABountyIsNeverPaidOutOfTheFloor() public {
        IOrderBook.Order memory order = _sale(id, 10_000);
        _place(order);
        market.moveTo(address(nvda), 100 * USD * 9_908 / 10_000);
        uint256 worth = _held(id) * 100 / 1e12;
        vm.prank(executor);
        uint256 kept = orderBook.executeOrder(order);
        assertGe(kept, worth * 99 / 100, "less than the position's slippage allows");
        assertLt(usdc.balanceOf(executor), kept * 10 / 10_000, "the whole bounty was above the floor");
    }

    function test_APurchaseIsRefusedWhileItsAgentMayNotBuy() public {
        IOrderBook.Order memory order = _entry(tsla, 1_000 * USDC);
        _place(order);
        _setStatus(IAgentRegistry.AgentStatus.Suspended);
        _refuseExecution(order, abi.encodeWithSelector(ITradeRouter.AgentNotTradable.selector, agentId));
        _setStatus(IAgentRegistry.AgentStatus.Active);

        uint256 snapshot = vm.snapshotState();
        _pauseRegistry();
        _refuseExecution(order, abi.encodeWithSelector(ITradeRouter.RegistryPaused.selector));
        vm.revertToState(snapshot);

        IOwnerControls.Mandate memory mandate = _mandate(TRADE);
        mandate.validUntil = block.timestamp + 1 hours;
        _setMandate(mandate);
        skip(1 hours + 1);
        _setPrice(tsla, TSLA_PRICE);
        vm.expectPartialRevert(ITradeRouter.MandateStopsBuying.selector);
        _execute(order);
        assertTrue(_isOpen(order));
    }

    function test_APurchaseIsNotRevivedByTheMandateAfterAStop() public {
        IOrderBook.Order memory order = _inParts(_entry(tsla, 1_000 * USDC), 2, 1 minutes);
        _place(order);
        _execute(order);
        skip(1 minutes);
        _setMandate(_mandate(REDUCE_ONLY));
        _setMandate(_mandate(TRADE));
        _refuseExecution(order, _error(IOrderBook.OrderIsVoid.selector, order));
    }

    function test_AReplacedBookExecutesNothing() public {
        IOrderBook.Order memory order = _sale(id, 10_000);
        _place(order);
        OrderBook next = new OrderBook(address(agents));
        vm.prank(admin);
        agents.setOrderBook(address(next));
        _refuseExecution(
            order, abi.encodeWithSelector(ITradeRouter.InvalidNonce.selector, router.nonces(agentId), type(uint256).max)
        );
        _refusePlacing(_sale(id, 10_000), abi.encodeWithSignature("OnlyTradeRouter(address)", address(orderBook)));
    }

    function test_ABookThatTheRegistryDoesNotNamePlacesNothingAndTradesNothing() public {
        OrderBook foreign = new OrderBook(address(agents));
        bytes32 executorRole = router.EXECUTOR_ROLE();
        vm.prank(admin);
        router.grantRole(executorRole, address(foreign));
        orderBook = foreign;
        _refusePlacing(_sale(id, 10_000), abi.encodeWithSignature("OnlyTradeRouter(address)", address(foreign)));
    }

    function test_ABookNeedsARegistry() public {
        vm.expectRevert(abi.encodeWithSignature("ZeroAddress()"));
        new OrderBook(address(0));
    }

    function test_OnlyTheAdminNamesTheBook() public {
        vm.prank(executor);
        vm.expectRevert();
        agents.setOrderBook(address(this));
        vm.prank(admin);
        vm.expectRevert(abi.encodeWithSignature("ZeroAddress()"));
        agents.setOrderBook(address(0));
    }

    function _executeAll(IOrderBook.Order[] memory orders) private returns (bool[] memory, bytes[] memory) {
        vm.prank(keeper);
        return orderBook.executeOrders(orders);
    }

    function _twice(IOrderBook.Order memory order) private pure returns (IOrderBook.Order[] memory orders) {
        orders = new IOrderBook.Order[](2);
        (orders[0], orders[1]) = (order, order);
    }

    function _peakOf(IOrderBook.Order memory order) private view returns (uint256) {
        return orderBook.orderStateOf(agentId, orderBook.hashOrder(order)).peak;
    }

    function _post(uint256 price, uint64 observedAt) private {
        address[] memory assets = new address[](1);
        int256[] memory prices = new int256[](1);
        uint64[] memory times = new uint64[](1);
        (assets[0], prices[0], times[0]) = (address(nvda), int256(price), observedAt);
        vm.prank(updater);
        oracle.post(assets, prices, times);
        (uint256 posted,,) = oracle.peekPrice(address(nvda));
        assertEq(posted, price, "the oracle did not take the price");
    }

    function _hook() private returns (HookToken hook) {
        hook = new HookToken(admin);
        bytes32 minter = hook.MINTER_ROLE();
        vm.prank(admin);
        hook.grantRole(minter, address(market));
        _list(hook, 100 * USD);
    }

    /// @dev Sells a part of the hook's position by an order, during which the hook makes the call.
    function _expectNoReentrance(HookToken hook, uint256 position, address target, bytes memory call) private {
        IOrderBook.Order memory order = _sale(position, 1_000);
        _place(order);
        hook.arm(target, call);
        _execute(order);
        assertEq(hook.reason(), abi.encodeWithSelector(ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector));
    }

    /// @dev Promotes the agent to a track of real capital.
    function _toFunded() private {
        IVaultTrackRegistry.VaultTrackConfig memory config = _policy();
        config.trackId = 1;
        _setPolicy(config);
        _promote();
    }
}
