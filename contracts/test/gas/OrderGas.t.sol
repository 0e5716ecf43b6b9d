// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {StockToken} from "../../src/embedded/StockToken.sol";
import {IOrderBook} from "../../src/interfaces/IOrderBook.sol";
import {OrderTest} from "../orders/OrderTest.sol";

/// @notice What orders cost their senders, as in `RouterGasTest`. An execution costs at most 20 % more than the same signed
/// intent in the same state, while the agent has another open order. The figures are kept in snapshots/OrderGas.json.
/// forge-config: default.isolate = true
contract OrderGasTest is OrderTest {
    function setUp() public override {
        super.setUp();
        (uint256 mine, uint256 key) = (agentId, signerKey);
        signerKey = 0xB0B;
        agentId = _register(vm.addr(signerKey));
        _submit(_reduceIntent(_open(nvda, 5_000 * USDC), 1_000));
        _submit(_reduceIntent(_open(tsla, 5_000 * USDC), 1_000));
        (agentId, signerKey) = (mine, key);
        _useDefaultLimits();
        _settle(nvda, NVDA_PRICE);
        _settle(tsla, TSLA_PRICE);
        _place(_sale(_open(tsla, 1_000 * USDC), 10_000));
        vm.prank(admin);
        usdc.mint(keeper, 1);
        skip(1);
    }

    function test_PlacingAndCancelling() public {
        IOrderBook.Order memory order = _at(_entry(nvda, 5_000 * USDC), BELOW, 100 * USD);
        bytes32 first = _place(order);
        order = _at(_entry(nvda, 5_000 * USDC), BELOW, 100 * USD);
        _place(order);
        _record("placeOrder, an entry with 3 rules");
        _cancel(first);
        _record("cancelOrder");
    }

    function test_PlacingAndReplacingAReduction() public {
        uint256 id = _open(nvda, 5_000 * USDC);
        _place(_at(_sale(id, 10_000), BELOW, 90 * USD));
        _place(_at(_sale(id, 10_000), BELOW, 90 * USD));
        _record("placeOrder, a stop");
        _place(_trail(id, 500));
        _record("placeOrder, a trailing stop");
        IOrderBook.Order memory order = _sale(id, 10_000);
        (order.key, order.validAfter) = (1, block.timestamp + 1 hours);
        _place(order);
        order.validAfter += 1;
        _place(order);
        _record("placeOrder, a heartbeat");
    }

    function test_RaisingPeaks() public {
        uint256 id = _open(nvda, 5_000 * USDC);
        IOrderBook.Order[] memory orders = new IOrderBook.Order[](10);
        for (uint256 i; i < 10; ++i) {
            orders[i] = _trail(id, uint16(100 + i));
            _place(orders[i]);
        }
        _setPrice(nvda, 110 * USD);
        skip(1);
        _raise(orders[0]);
        _record("raisePeaks, one");
        _setPrice(nvda, 111 * USD);
        skip(1);
        vm.prank(keeper);
        orderBook.raisePeaks(orders);
        _record("raisePeaks, ten");
    }

    function test_ExecutingAnEntry() public {
        IOrderBook.Order memory order = _at(_entry(nvda, 5_000 * USDC), BELOW, 100 * USD);
        _place(order);
        _settle(nvda, 100 * USD);
        skip(1);
        uint256 snapshot = vm.snapshotState();
        _open(nvda, 5_000 * USDC);
        uint256 signed = _lastCall();
        vm.revertToState(snapshot);
        _execute(order);
        _compare("executeOrder, an entry with 3 rules", signed);
    }

    function test_ExecutingAnAdd() public {
        uint256 id = _open(nvda, 5_000 * USDC);
        IOrderBook.Order memory order = _at(_addition(id, 1_000 * USDC), BELOW, 100 * USD);
        _place(order);
        _settle(nvda, 100 * USD);
        skip(1);
        uint256 snapshot = vm.snapshotState();
        _submit(_addIntent(id, 1_000 * USDC));
        uint256 signed = _lastCall();
        vm.revertToState(snapshot);
        _execute(order);
        _compare("executeOrder, an add", signed);
    }

    function test_ExecutingAStop() public {
        uint256 id = _open(nvda, 5_000 * USDC);
        IOrderBook.Order memory order = _at(_sale(id, 5_000), BELOW, 100 * USD);
        _place(order);
        _settle(nvda, 100 * USD);
        skip(1);
        uint256 snapshot = vm.snapshotState();
        _submit(_reduceIntent(id, 5_000));
        uint256 signed = _lastCall();
        vm.revertToState(snapshot);
        _execute(order);
        _compare("executeOrder, a stop of half", signed);
    }

    function test_ExecutingATrailingStop() public {
        uint256 id = _open(nvda, 5_000 * USDC);
        IOrderBook.Order memory order = _trail(id, 500);
        _place(order);
        _settle(nvda, 95 * USD);
        skip(1);
        uint256 snapshot = vm.snapshotState();
        _submit(_reduceIntent(id, 10_000));
        uint256 signed = _lastCall();
        vm.revertToState(snapshot);
        _execute(order);
        _compare("executeOrder, a trailing stop of all", signed);
    }

    function test_ExecutingABatch() public {
        uint256 id = _open(nvda, 5_000 * USDC);
        IOrderBook.Order[] memory orders = new IOrderBook.Order[](10);
        for (uint256 i; i < 10; ++i) {
            orders[i] = _at(_sale(id, 1_000), BELOW, 100 * USD);
            _place(orders[i]);
        }
        _settle(nvda, 100 * USD);
        skip(1);
        vm.prank(keeper);
        (bool[] memory executed,) = orderBook.executeOrders(orders);
        _record("executeOrders, ten stops of a tenth");
        for (uint256 i; i < 10; ++i) {
            assertTrue(executed[i]);
        }
    }

    function test_EndingDeadOrders() public {
        IOrderBook.Order[] memory orders = new IOrderBook.Order[](10);
        for (uint256 i; i < 10; ++i) {
            orders[i] = _entry(nvda, 1_000 * USDC);
            _place(orders[i]);
        }
        _stopBuying();
        vm.prank(keeper);
        orderBook.endDeadOrders(orders);
        _record("endDeadOrders, ten void ones");
    }

    function _settle(StockToken token, uint256 price) private {
        _setPrice(token, price);
        skip(5 minutes);
        _setOraclePrice(token, price);
    }

    function _compare(string memory name, uint256 signed) private {
        uint256 used = _lastCall();
        vm.snapshotValue("OrderGas", string.concat(name, ", the same signed"), signed);
        vm.snapshotValue("OrderGas", name, used);
        assertLe(used * 100, signed * 120, string.concat(name, " costs more than 20 % more than the signed intent"));
    }

    function _record(string memory name) private {
        vm.snapshotValue("OrderGas", name, _lastCall());
    }

    function _lastCall() private view returns (uint256) {
        return vm.lastCallGas().gasTotalUsed;
    }
}
