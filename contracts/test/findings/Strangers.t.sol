// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {StockToken} from "../../src/embedded/StockToken.sol";
import {IOrderBook} from "../../src/interfaces/IOrderBook.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {OrderTest} from "../orders/OrderTest.sol";

/// @notice What strangers get out of executing orders: they trade at the floor of exits, which starts at 0.5 % and widens within 15
/// minutes, and never below the one that was signed
contract StrangersTest is OrderTest {
    StockToken private thin;

    function setUp() public override {
        super.setUp();
        thin = _newToken("THIN", 18);
        _listWithDepth(thin, 100 * USD, 5_000_000 * USDC);
        _useDefaultLimits();
        skip(5 minutes);
        _quote(100 * USD);
        skip(1);
    }

    /// @dev A round trip of 20,000 at the signed slippage of 1 % was worth 329 to who moves the pool before and after each half.
    function test_AStrangerGetsNoMoreThanTheTightFloorOfARoundTrip() public {
        uint256 before = vault.totalAssets();
        IOrderBook.Order memory entry = _entry(thin, MAX_TRADE);
        _place(entry);
        _sandwich(entry, 101 * USD);
        IOrderBook.Order memory sale = _sale(positions.positionCount(), 10_000);
        _place(sale);
        _sandwich(sale, 99 * USD);
        // Half a percent each way, and a unit for rounding.
        assertLe(before - vault.totalAssets(), 2 * MAX_TRADE * 50 / 10_000 + 1);
    }

    function test_AnExecutorUsesTheSignedSlippageAtOnceAndAStrangerWaits() public {
        IOrderBook.Order memory order = _entry(thin, 1_000 * USDC);
        _place(order);
        market.moveTo(address(thin), 100.8e8);
        _refuseForSlippage(order);
        vm.prank(executor);
        assertGt(orderBook.executeOrder(order), 0);

        IOrderBook.Order memory sale = _sale(positions.positionCount(), 10_000);
        _place(sale);
        market.moveTo(address(thin), 99.2e8);
        _refuseForSlippage(sale);
        vm.prank(executor);
        assertGt(orderBook.executeOrder(sale), 0);
    }

    function test_TheFloorForStrangersWidensFromTheFirstRecordOnUpToTheSignedOne() public {
        IOrderBook.Order memory order = _entry(thin, 1_000 * USDC);
        _place(order);
        market.moveTo(address(thin), 100.8e8);
        skip(5 minutes);
        _quote(100 * USD);
        _refuseForSlippage(order);
        vm.expectEmit(address(orderBook));
        emit IOrderBook.OrderDue(orderBook.hashOrder(order), agentId, block.timestamp);
        _recordDue(order);
        // The fill is 0.87 % below: 0.5 % and 2.5 % * 134 / 900.
        skip(133);
        _quote(100 * USD);
        _refuseForSlippage(order);
        skip(1);
        _execute(order);

        order = _entry(nvda, 1_000 * USDC);
        _place(order);
        _recordDue(order);
        skip(15 minutes);
        _quote(100 * USD);
        market.moveTo(address(nvda), 101.1e8);
        _refuseForSlippage(order);
    }

    function test_ARecordThatNobodyConfirmsStartsOver() public {
        IOrderBook.Order memory order = _entry(thin, 1_000 * USDC);
        _place(order);
        market.moveTo(address(thin), 100.8e8);
        _recordDue(order);
        _recordNothing(order);
        skip(15 minutes);
        _quote(100 * USD);
        uint256 snapshot = vm.snapshotState();
        _execute(order);
        vm.revertToState(snapshot);
        skip(1);
        _refuseForSlippage(order);
        vm.revertToState(snapshot);
        _recordDue(order);
        skip(1);
        _execute(order);
    }

    function test_NothingIsRecordedBeforeAnOrderIsDueAtAFreshPrice() public {
        IOrderBook.Order memory order = _at(_entry(thin, 1_000 * USDC), BELOW, 100 * USD);
        order.validAfter = block.timestamp + 1 minutes;
        _place(order);
        _recordNothing(order);
        skip(60 hours);
        _recordNothing(order);
        _quote(101 * USD);
        _recordNothing(order);
        order.agentId = 999;
        _recordNothing(order);
        order.agentId = agentId;
        market.moveTo(address(thin), 100.8e8);
        skip(5 minutes);
        _quote(100 * USD);
        _refuseForSlippage(order);
    }

    function test_EachPartWaitsForItself() public {
        IOrderBook.Order memory order = _inParts(_entry(thin, 2_000 * USDC), 2, 1 minutes);
        _place(order);
        market.moveTo(address(thin), 100.8e8);
        _recordDue(order);
        skip(3 minutes);
        _quote(100 * USD);
        _execute(order);
        skip(3 minutes);
        _quote(100 * USD);
        _refuseForSlippage(order);
    }

    function test_AStrangersOrderOnPaperHasTheSameFloor() public {
        vm.prank(admin);
        tracks.setVaultTrackCapitalMode(address(vault), 0, 0);
        agentId = _register(vm.addr(signerKey));
        IOrderBook.Order memory order = _entry(thin, 1_000 * USDC);
        _place(order);
        market.moveTo(address(thin), 100.8e8);
        _refuseForSlippage(order);
        market.moveTo(address(thin), 100.2e8);
        _execute(order);
    }

    /// @dev The stranger pushes the pool as far as the order still fills, executes it, and trades back.
    function _sandwich(IOrderBook.Order memory order, uint256 furthest) private {
        bool isUp = furthest > 100 * USD;
        bool isExecuted;
        for (uint256 price = furthest; !isExecuted; price = isUp ? price - 1e6 : price + 1e6) {
            market.moveTo(address(thin), price);
            vm.prank(keeper);
            (isExecuted,) = address(orderBook).call(abi.encodeCall(orderBook.executeOrder, (order)));
        }
        market.moveTo(address(thin), 100 * USD);
    }

    function _recordDue(IOrderBook.Order memory order) private {
        orderBook.recordDueOrders(_just(order));
    }

    function _recordNothing(IOrderBook.Order memory order) private {
        vm.recordLogs();
        _recordDue(order);
        assertEq(vm.getRecordedLogs().length, 0, "recorded");
    }

    function _refuseForSlippage(IOrderBook.Order memory order) private {
        vm.prank(keeper);
        (bool success, bytes memory reason) = address(orderBook).call(abi.encodeCall(orderBook.executeOrder, (order)));
        assertFalse(success, "executed");
        assertEq(bytes4(reason), ITradeRouter.SlippageExceeded.selector);
    }

    function _quote(uint256 price) private {
        _setOraclePrice(thin, price);
        _setOraclePrice(nvda, 100 * USD);
    }
}
