// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {StockToken} from "../../src/embedded/StockToken.sol";
import {IOrderBook} from "../../src/interfaces/IOrderBook.sol";
import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {OwnerTest} from "../owner/OwnerTest.sol";

/// @notice The words in which tests place, cancel and execute orders. The typed data is written out here: it is not taken
/// from the contract.
abstract contract OrderTest is OwnerTest {
    string private constant PLACE_ORDER =
        "PlaceOrder(uint256 agentId,uint8 side,address token,uint256 positionId,uint256 usdcAmount,uint16 exitBps,bytes32 exitsHash,uint16 maxSlippageBps,uint8 condition,uint256 price,uint16 trailBps,uint256 validAfter,uint256 validUntil,uint8 parts,uint256 interval,uint256 key,uint256 deadline,uint256 nonce)";

    uint8 internal constant OPEN = uint8(IOrderBook.Side.Open);
    uint8 internal constant ADD = uint8(IOrderBook.Side.Add);
    uint8 internal constant REDUCE = uint8(IOrderBook.Side.Reduce);
    uint8 internal constant NONE = uint8(IOrderBook.Condition.None);
    uint8 internal constant BELOW = uint8(IOrderBook.Condition.AtOrBelow);
    uint8 internal constant ABOVE = uint8(IOrderBook.Condition.AtOrAbove);
    uint8 internal constant TRAILING = uint8(IOrderBook.Condition.Trailing);

    // Orders, of one part and without a condition unless a test sets one

    function _entry(StockToken token, uint256 usdcAmount) internal view returns (IOrderBook.Order memory order) {
        order = _order();
        (order.side, order.token, order.usdcAmount) = (OPEN, address(token), usdcAmount);
        (order.maxSlippageBps, order.exits) = (100, _threeRules());
    }

    function _addition(uint256 positionId, uint256 usdcAmount) internal view returns (IOrderBook.Order memory order) {
        order = _order();
        (order.side, order.token) = (ADD, positions.getPosition(positionId).token);
        (order.positionId, order.usdcAmount, order.maxSlippageBps) = (positionId, usdcAmount, 100);
    }

    function _sale(uint256 positionId, uint16 exitBps) internal view returns (IOrderBook.Order memory order) {
        order = _order();
        (order.side, order.token) = (REDUCE, positions.getPosition(positionId).token);
        (order.positionId, order.exitBps) = (positionId, exitBps);
    }

    function _trail(uint256 positionId, uint16 trailBps) internal view returns (IOrderBook.Order memory order) {
        order = _sale(positionId, 10_000);
        (order.condition, order.trailBps) = (TRAILING, trailBps);
    }

    function _at(IOrderBook.Order memory order, uint8 condition, uint256 price)
        internal
        pure
        returns (IOrderBook.Order memory)
    {
        (order.condition, order.price) = (condition, price);
        return order;
    }

    function _inParts(IOrderBook.Order memory order, uint8 parts, uint256 interval)
        internal
        pure
        returns (IOrderBook.Order memory)
    {
        (order.parts, order.interval) = (parts, interval);
        return order;
    }

    function _order() private view returns (IOrderBook.Order memory order) {
        order.agentId = agentId;
        order.validUntil = block.timestamp + 30 days;
        order.parts = 1;
        order.deadline = block.timestamp + 600;
        order.nonce = router.nonces(agentId);
    }

    // Calls

    function _place(IOrderBook.Order memory order) internal returns (bytes32) {
        order.nonce = router.nonces(order.agentId);
        bytes memory signature = _sign(signerKey, _orderDigest(order));
        vm.prank(relayer);
        return orderBook.placeOrder(order, signature);
    }

    function _refusePlacing(IOrderBook.Order memory order, bytes memory error) internal {
        bytes memory signature = _sign(signerKey, _orderDigest(order));
        uint256 nonce = router.nonces(agentId);
        _refuseCall(abi.encodeCall(orderBook.placeOrder, (order, signature)), error);
        assertEq(router.nonces(agentId), nonce, "nonce moved");
    }

    function _execute(IOrderBook.Order memory order) internal returns (uint256) {
        vm.prank(keeper);
        return orderBook.executeOrder(order);
    }

    function _refuseExecution(IOrderBook.Order memory order, bytes memory error) internal {
        bytes32 id = orderBook.hashOrder(order);
        bytes memory before = abi.encode(orderBook.orderStateOf(order.agentId, id));
        _refuseCall(abi.encodeCall(orderBook.executeOrder, (order)), error);
        assertEq(abi.encode(orderBook.orderStateOf(order.agentId, id)), before, "a refusal changed the order");
    }

    function _refuseCall(bytes memory call, bytes memory error) internal {
        vm.prank(keeper);
        (bool success, bytes memory reason) = address(orderBook).call(call);
        assertFalse(success, "accepted");
        assertEq(reason, error, "refused for another reason");
    }

    function _cancel(bytes32 orderId) internal {
        (IOrderBook.CancelOrderIntent memory intent, bytes memory signature) = _cancelIntent(orderId, signerKey);
        vm.prank(relayer);
        orderBook.cancelOrder(intent, signature);
    }

    function _cancelIntent(bytes32 orderId, uint256 key)
        internal
        view
        returns (IOrderBook.CancelOrderIntent memory intent, bytes memory signature)
    {
        intent = IOrderBook.CancelOrderIntent(agentId, orderId, _soon(), router.nonces(agentId));
        bytes32 typehash = keccak256("CancelOrder(uint256 agentId,bytes32 orderId,uint256 deadline,uint256 nonce)");
        signature =
            _sign(key, _bookDigest(keccak256(abi.encode(typehash, agentId, orderId, intent.deadline, intent.nonce))));
    }

    function _raise(IOrderBook.Order memory order) internal {
        vm.prank(keeper);
        orderBook.raisePeaks(_just(order));
    }

    function _just(IOrderBook.Order memory order) internal pure returns (IOrderBook.Order[] memory orders) {
        orders = new IOrderBook.Order[](1);
        orders[0] = order;
    }

    // State

    function _isOpen(IOrderBook.Order memory order) internal view returns (bool) {
        return orderBook.orderStateOf(order.agentId, orderBook.hashOrder(order)).placedAt != 0;
    }

    function _endAsDead(IOrderBook.Order memory order, IOrderBook.OrderEnd reason) internal {
        _expectEnd(order, reason);
        orderBook.endDeadOrders(_just(order));
        assertFalse(_isOpen(order));
    }

    function _expectEnd(IOrderBook.Order memory order, IOrderBook.OrderEnd reason) internal {
        bytes32 orderId = orderBook.hashOrder(order);
        vm.expectEmit(address(orderBook));
        emit IOrderBook.OrderEnded(orderId, order.agentId, reason);
    }

    function _notOpen(IOrderBook.Order memory order) internal view returns (bytes memory) {
        return _error(IOrderBook.OrderNotOpen.selector, order);
    }

    function _assertIdle() internal view {
        assertEq(orderBook.executionOf(agentId), 0);
    }

    function _held(uint256 positionId) internal view returns (uint256) {
        return positions.getPosition(positionId).tokenAmount;
    }

    function _error(bytes4 selector, IOrderBook.Order memory order) internal view returns (bytes memory) {
        return abi.encodeWithSelector(selector, orderBook.hashOrder(order));
    }

    function _notMet(IOrderBook.Order memory order, uint256 price, uint256 trigger)
        internal
        view
        returns (bytes memory)
    {
        return abi.encodeWithSelector(IOrderBook.ConditionNotMet.selector, orderBook.hashOrder(order), price, trigger);
    }

    // Typed data

    function _orderDigest(IOrderBook.Order memory order) internal view returns (bytes32) {
        bytes memory head = abi.encode(
            keccak256(bytes(PLACE_ORDER)),
            order.agentId,
            order.side,
            order.token,
            order.positionId,
            order.usdcAmount,
            order.exitBps,
            _hashLadder(order.exits),
            order.maxSlippageBps
        );
        bytes memory middle =
            abi.encode(order.condition, order.price, order.trailBps, order.validAfter, order.validUntil);
        bytes memory tail = abi.encode(order.parts, order.interval, order.key, order.deadline, order.nonce);
        return _bookDigest(keccak256(bytes.concat(head, middle, tail)));
    }

    function _hashLadder(IPositionManager.ExitRule[] memory exits) private pure returns (bytes32) {
        bytes32[] memory hashes = new bytes32[](exits.length);
        for (uint256 i; i < exits.length; ++i) {
            hashes[i] = keccak256(abi.encode(exits[i].triggerType, exits[i].triggerBps, exits[i].exitBps));
        }
        return keccak256(abi.encode(hashes));
    }

    function _bookDigest(bytes32 structHash) private view returns (bytes32) {
        bytes32 separator = keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256("Service OrderBook"),
                keccak256("1"),
                block.chainid,
                address(orderBook)
            )
        );
        return keccak256(abi.encodePacked("\x19\x01", separator, structHash));
    }
}
