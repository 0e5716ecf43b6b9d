// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {IOrderBook} from "../../src/interfaces/IOrderBook.sol";
import {IPriceOracle} from "../../src/interfaces/IPriceOracle.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
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
        assertEq(orderBook.keeperOf(agentId), address(0));
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
}
