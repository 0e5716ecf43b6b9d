// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

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
