// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Vm} from "forge-std/Test.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "../../src/interfaces/IAllocationManager.sol";
import {IOrderBook} from "../../src/interfaces/IOrderBook.sol";
import {IOwnerControls} from "../../src/interfaces/IOwnerControls.sol";
import {ITradePolicy} from "../../src/interfaces/ITradePolicy.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {OrderTest} from "./OrderTest.sol";

/// @notice The columns of orders in the table of docs/decisions/owner.md "Precedence": placing an order that buys and one that
/// sells, executing one that buys and one that sells, cancelling
contract OrderPrecedenceTest is OrderTest {
    uint256 private positionId;
    /// @dev Encoded: the compiler copies no list of structs to storage.
    bytes private encodedEntry;
    bytes private encodedSale;

    function setUp() public override {
        super.setUp();
        positionId = _open(nvda, 5_000 * USDC);
        IOrderBook.Order memory order = _entry(tsla, 1_000 * USDC);
        _place(order);
        encodedEntry = abi.encode(order);
        order = _sale(positionId, 5_000);
        _place(order);
        encodedSale = abi.encode(order);
    }

    function test_NothingIsStopped() public {
        _expectRow("yyyyy");
    }

    function test_RegistryPaused() public {
        _pauseRegistry();
        _expectRow("-y-yy");
    }

    function test_VaultTradingPaused() public {
        _pauseTrading(true);
        _expectRow("yy--y");
    }

    function test_AgentSuspended() public {
        _setStatus(IAgentRegistry.AgentStatus.Suspended);
        _expectRow("-y-yy");
    }

    function test_AgentFailed() public {
        _setStatus(IAgentRegistry.AgentStatus.Failed);
        _expectRow("-y-yy");
    }

    function test_TrackInactive() public {
        IVaultTrackRegistry.VaultTrackConfig memory config = _policy();
        config.active = false;
        _setPolicy(config);
        _expectRow("yy-yy");
    }

    function test_AllocationPaused() public {
        vm.prank(operator);
        allocations.setAllocationStatus(agentId, uint8(IAllocationManager.AllocationStatus.Paused));
        _expectRow("yy-yy");
    }

    function test_TrackLimitExceeded() public {
        IVaultTrackRegistry.VaultTrackConfig memory config = _policy();
        config.maxTradeSizeBps = 1;
        _setPolicy(config);
        _expectRow("yy-yy");
    }

    function test_MandateLimitExceeded() public {
        IOwnerControls.Mandate memory mandate = _mandate(TRADE);
        mandate.maxExposureUsdc = 1;
        _setMandate(mandate);
        _expectRow("yy-yy");
    }

    function test_MandateExpired() public {
        IOwnerControls.Mandate memory mandate = _mandate(TRADE);
        mandate.validUntil = block.timestamp - 1;
        _setMandate(mandate);
        _expectRow("-y-yy");
    }

    function test_MandateReduceOnly() public {
        _setMandate(_mandate(REDUCE_ONLY));
        _expectRow("-y-yy");
    }

    function test_MandateStopped() public {
        _setMandate(_mandate(STOPPED));
        _expectRow("-y-yy");
    }

    function test_OwnerClosesAll() public {
        _closeAll();
        _expectRow("-y--y");
    }

    function test_PriceStale() public {
        skip(2 hours);
        _expectRow("yy--y");
    }

    function test_PolicyRefusesThePool() public {
        ITradePolicy.Limits memory limits = _wideLimits();
        limits.maxSpotDeviationBps = 100;
        _setLimits(limits);
        market.moveTo(address(tsla), TSLA_PRICE * 9_800 / 10_000);
        market.moveTo(address(nvda), 98 * USD);
        _expectRow("yy--y");
    }

    function test_TheOwnersStopEndsBuyingOrdersInTheSameBlockAndKeepsSellingOnes() public {
        _stopBuying();
        _refuseExecution(_placedEntry(), _error(IOrderBook.OrderIsVoid.selector, _placedEntry()));
        _setMandate(_mandate(TRADE));
        _refuseExecution(_placedEntry(), _error(IOrderBook.OrderIsVoid.selector, _placedEntry()));
        _execute(_placedSale());
    }

    function test_AFlattenEndsAllOrders() public {
        _closeAll();
        _setMandate(_mandate(TRADE));
        _refuseExecution(_placedEntry(), _error(IOrderBook.OrderIsVoid.selector, _placedEntry()));
        _refuseExecution(_placedSale(), _error(IOrderBook.OrderIsVoid.selector, _placedSale()));
    }

    /// @dev The stop alone writes no epoch: every way into and out of it ends what was placed before it, and nothing else.
    function test_OrdersPlacedWhileStoppedStayWhenTheStopIsRepeatedAndLifted() public {
        _closeAll();
        IOrderBook.Order memory sale = _sale(positionId, 1_000);
        _place(sale);
        vm.recordLogs();
        _stopBuying();
        _closeAll();
        _setMandate(_mandate(STOPPED));
        assertEq(_voidings(), 0, "ended again");
        _setMandate(_mandate(TRADE));
        assertEq(_voidings(), 0, "ended by lifting");
        _execute(sale);
        IOrderBook.Order memory entry = _entry(tsla, 1_000 * USDC);
        _place(entry);
        _execute(entry);
        _refuseExecution(_placedEntry(), _error(IOrderBook.OrderIsVoid.selector, _placedEntry()));
        _refuseExecution(_placedSale(), _error(IOrderBook.OrderIsVoid.selector, _placedSale()));
    }

    function test_ACloseAllAfterAStopEndsTheSellingOrdersToo() public {
        _stopBuying();
        vm.recordLogs();
        _closeAll();
        assertEq(_voidings(), 1);
        _refuseExecution(_placedSale(), _error(IOrderBook.OrderIsVoid.selector, _placedSale()));
    }

    function test_EpochsOnlyGrow(uint8[12] memory steps) public {
        (, uint256 buys, uint256 sales) = agents.orderContextOf(agentId);
        for (uint256 i; i < steps.length; ++i) {
            uint256 step = steps[i] % 6;
            if (step == 0) _stopBuying();
            else if (step == 1) _closeAll();
            else if (step == 5) _setSigner(signerKey);
            else _setMandate(_mandate(step == 2 ? TRADE : step == 3 ? REDUCE_ONLY : STOPPED));
            (, uint256 nextBuys, uint256 nextSales) = agents.orderContextOf(agentId);
            assertGe(nextBuys, buys);
            assertGe(nextSales, sales);
            if (step < 2) assertGt(nextBuys, 0);
            (buys, sales) = (nextBuys, nextSales);
        }
    }

    function test_AMandateThatStillTradesEndsNothing() public {
        _setMandate(_mandate(TRADE));
        _execute(_placedEntry());
        _execute(_placedSale());
    }

    function test_AnOrderPlacedAfterTheStopIsLiftedExecutes() public {
        _stopBuying();
        _setMandate(_mandate(TRADE));
        IOrderBook.Order memory next = _entry(tsla, 1_000 * USDC);
        _place(next);
        _execute(next);
    }

    function test_OrdersBlockNoReductionAndNoExit() public {
        _submit(_reduceIntent(positionId, 5_000));
        _setPrice(nvda, 91 * USD);
        _exit(positionId);
        assertEq(_held(positionId), 0);
    }

    function _voidings() private returns (uint256 count) {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i; i < logs.length; ++i) {
            if (logs[i].topics[0] == IAgentRegistry.OrdersVoided.selector) ++count;
        }
    }

    function _placedEntry() private view returns (IOrderBook.Order memory) {
        return abi.decode(encodedEntry, (IOrderBook.Order));
    }

    function _placedSale() private view returns (IOrderBook.Order memory) {
        return abi.decode(encodedSale, (IOrderBook.Order));
    }

    /// @param row A letter per column: "y" where the call passes
    function _expectRow(string memory row) private {
        for (uint256 column; column < 5; ++column) {
            uint256 snapshot = vm.snapshotState();
            (bool success,) = address(orderBook).call(_callOf(column));
            assertEq(success, bytes(row)[column] == "y", vm.toString(column));
            vm.revertToState(snapshot);
        }
    }

    function _callOf(uint256 column) private view returns (bytes memory) {
        if (column == 2) return abi.encodeCall(orderBook.executeOrder, (_placedEntry()));
        if (column == 3) return abi.encodeCall(orderBook.executeOrder, (_placedSale()));
        if (column == 4) {
            (IOrderBook.CancelOrderIntent memory intent, bytes memory signature) =
                _cancelIntent(orderBook.hashOrder(_placedSale()), signerKey);
            return abi.encodeCall(orderBook.cancelOrder, (intent, signature));
        }
        IOrderBook.Order memory order = column == 0 ? _entry(tsla, 500 * USDC) : _sale(positionId, 1_000);
        return abi.encodeCall(orderBook.placeOrder, (order, _sign(signerKey, _orderDigest(order))));
    }
}
