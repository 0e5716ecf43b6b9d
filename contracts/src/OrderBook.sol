// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {PriceCarrier} from "./access/PriceCarrier.sol";
import {IAgentRegistry} from "./interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "./interfaces/IAllocationManager.sol";
import {IMandateVault} from "./interfaces/IMandateVault.sol";
import {IOrderBook} from "./interfaces/IOrderBook.sol";
import {IPositionManager} from "./interfaces/IPositionManager.sol";
import {IPriceOracle} from "./interfaces/IPriceOracle.sol";
import {ITradePolicy} from "./interfaces/ITradePolicy.sol";
import {ITradeRouter} from "./interfaces/ITradeRouter.sol";
import {ExitLadder} from "./libraries/ExitLadder.sol";
import {IntentHash} from "./libraries/IntentHash.sol";
import {OrderParts} from "./libraries/OrderParts.sol";
import {PriceMath} from "./libraries/PriceMath.sol";

/// @title Orders of one storage slot each
/// @notice `IOrderBook` documents the functions. An order's id is the digest of its content, so the slot under the id proves the
/// content; the event holds it. The book has no admin and moves no funds: it calls the router's functions for intents.
contract OrderBook is IOrderBook, PriceCarrier, EIP712 {
    using IntentHash for IPositionManager.ExitRule[];
    using SafeCast for uint256;

    /// @dev An `OrderState` in one slot, with the order's side, since whoever ends the order may not know its content, and whether a
    /// part was ever recorded as due.
    struct StoredOrder {
        uint96 peak;
        uint32 positionId;
        uint32 epoch;
        uint32 placedAt;
        uint40 nextAt;
        uint8 partsDone;
        bool isBuy;
        bool isRecorded;
    }

    /// @dev How many open orders an agent has in its latest epochs. Those of earlier ones are void and not counted.
    struct OpenOrders {
        uint32 buyEpoch;
        uint32 saleEpoch;
        uint8 buys;
        uint8 sales;
    }

    /// @dev When a part was first recorded as due, and when last.
    struct DueOrder {
        uint40 since;
        uint40 seenAt;
    }

    /// @inheritdoc IOrderBook
    // forgefmt: disable-next-item
    bytes32 public constant PLACE_ORDER_TYPEHASH =
        keccak256("PlaceOrder(uint256 agentId,uint8 side,address token,uint256 positionId,uint256 usdcAmount,uint16 exitBps,bytes32 exitsHash,uint16 maxSlippageBps,uint8 condition,uint256 price,uint16 trailBps,uint256 validAfter,uint256 validUntil,uint8 parts,uint256 interval,uint256 key,uint256 deadline,uint256 nonce)");

    /// @inheritdoc IOrderBook
    bytes32 public constant CANCEL_ORDER_TYPEHASH =
        keccak256("CancelOrder(uint256 agentId,bytes32 orderId,uint256 deadline,uint256 nonce)");

    /// @inheritdoc IOrderBook
    uint256 public constant MAX_OPEN_ORDERS = 20;

    bytes32 private constant EXECUTOR_ROLE = keccak256("EXECUTOR_ROLE");
    uint256 private constant MAX_PARTS = 100;

    /// @dev Two parts in one block would be one trade of twice the size.
    uint256 private constant MIN_INTERVAL = 1 minutes;

    /// @dev No policy refuses a deadline this near, so placing asks it about later ones only.
    uint256 private constant MIN_DEADLINE_BOUND = 10 minutes;

    /// @dev No agent's next nonce: `IAllocationManager.authorize` asks the book instead of checking a signature.
    uint256 private constant ORDER_NONCE = type(uint256).max;

    /// @dev The gas that one order of a batch may use, more than five times what one costs: a token that burns all it gets
    /// leaves the others theirs. `executeOrder` has no such bound.
    uint256 private constant MAX_ORDER_GAS = 3_000_000;

    /// @dev As for exits: a record expires after this time without a confirmation, and the shortest time between two.
    uint256 private constant DUE_EXPIRY = 15 minutes;
    uint256 private constant DUE_REFRESH = 1 minutes;

    IAgentRegistry private immutable _agents;
    IAllocationManager private immutable _allocations;

    /// @dev By agent, so that an agent cancels its own orders only.
    mapping(uint256 agentId => mapping(bytes32 orderId => StoredOrder)) private _orders;

    /// @inheritdoc IOrderBook
    mapping(uint256 agentId => mapping(uint256 key => bytes32)) public orderIdOf;

    mapping(uint256 agentId => OpenOrders) private _openOrders;
    mapping(bytes32 orderId => DueOrder) private _dueOrders;

    /// @dev As `executionOf`, with the agent in the last 56 bits. Ids count from 1, so they fit.
    uint256 private transient _execution;

    error ReentrancyGuardReentrantCall();

    constructor(address agentRegistry_) EIP712("Service OrderBook", "1") {
        if (agentRegistry_ == address(0)) revert ZeroAddress();
        _agents = IAgentRegistry(agentRegistry_);
        _allocations = IAllocationManager(IAgentRegistry(agentRegistry_).allocationManager());
    }

    /// @dev Everything else that the book calls is a view, or cannot call back.
    modifier unlessExecuting() {
        if (_execution != 0) revert ReentrancyGuardReentrantCall();
        _;
    }

    /// @inheritdoc IOrderBook
    function placeOrder(Order calldata order, bytes calldata signature)
        external
        unlessExecuting
        returns (bytes32 orderId)
    {
        if (block.timestamp > order.deadline) revert ITradeRouter.ExpiredDeadline();
        orderId = hashOrder(order);
        (address vault, uint8 track,,,) =
            _allocations.authorize(order.agentId, order.nonce, orderId, signature, _isBuy(order));
        ITradeRouter router = ITradeRouter(tradeRouter());
        if (order.deadline > block.timestamp + MIN_DEADLINE_BOUND) {
            ITradePolicy(router.tradePolicy()).checkDeadline(vault, track, order.deadline);
        }
        _checkContent(order);
        if (order.positionId != 0) _checkPosition(order, router);

        if (order.key != 0) _replace(order.agentId, order.key, orderId);
        StoredOrder memory state = StoredOrder({
            peak: _firstPeak(order, vault),
            positionId: order.positionId.toUint32(),
            epoch: _takePlace(order),
            placedAt: block.timestamp.toUint32(),
            nextAt: order.validAfter.toUint40(),
            partsDone: 0,
            isBuy: _isBuy(order),
            isRecorded: false
        });
        _orders[order.agentId][orderId] = state;
        emit OrderPlaced(orderId, order.agentId, order.positionId, order, state.peak);
    }

    /// @inheritdoc IOrderBook
    function cancelOrder(CancelOrderIntent calldata intent, bytes calldata signature) external unlessExecuting {
        if (block.timestamp > intent.deadline) revert ITradeRouter.ExpiredDeadline();
        _allocations.authorize(intent.agentId, intent.nonce, hashCancelOrder(intent), signature, false);
        if (_orders[intent.agentId][intent.orderId].placedAt == 0) revert OrderNotOpen(intent.orderId);
        _end(intent.agentId, intent.orderId, OrderEnd.Cancelled);
    }

    /// @inheritdoc IOrderBook
    function executeOrder(Order calldata order) external unlessExecuting returns (uint256 amount) {
        return _execute(order, msg.sender);
    }

    /// @inheritdoc IOrderBook
    function executeOrders(Order[] calldata orders)
        external
        unlessExecuting
        returns (bool[] memory executed, bytes[] memory reasons)
    {
        executed = new bool[](orders.length);
        reasons = new bytes[](orders.length);
        for (uint256 i; i < orders.length; ++i) {
            try this.executeOrderFor{gas: MAX_ORDER_GAS}(orders[i], msg.sender) {
                executed[i] = true;
            } catch (bytes memory reason) {
                reasons[i] = reason;
            }
        }
    }

    /// @notice Executes one order of a batch in a call of its own, so that it can fail alone; only the book itself
    function executeOrderFor(Order calldata order, address keeper) external {
        if (msg.sender != address(this)) revert OnlySelf(msg.sender);
        _execute(order, keeper);
    }

    /// @inheritdoc IOrderBook
    function recordDueOrders(Order[] calldata orders) external unlessExecuting {
        for (uint256 i; i < orders.length; ++i) {
            Order calldata order = orders[i];
            if (waitsFor(order).length != 0) continue;
            bytes32 orderId = hashOrder(order);
            DueOrder storage due = _dueOrders[orderId];
            if (block.timestamp < due.seenAt + DUE_REFRESH) continue;
            StoredOrder storage stored = _orders[order.agentId][orderId];
            uint256 since = _dueSince(orderId, stored);
            stored.isRecorded = true;
            (due.since, due.seenAt) = (since.toUint40(), block.timestamp.toUint40());
            emit OrderDue(orderId, order.agentId, since);
        }
    }

    /// @inheritdoc IOrderBook
    function raisePeaks(Order[] calldata orders) external unlessExecuting {
        for (uint256 i; i < orders.length; ++i) {
            Order calldata order = orders[i];
            if (order.condition != uint8(Condition.Trailing)) continue;
            bytes32 orderId = hashOrder(order);
            StoredOrder storage state = _orders[order.agentId][orderId];
            if (state.placedAt == 0) continue;
            (uint256 price, uint256 observedAt) = _priceIfFresh(_agents.vaultOf(order.agentId), order.token);
            if (observedAt <= state.placedAt || price <= state.peak || state.peak == 0 && price < order.price) {
                continue;
            }
            state.peak = price.toUint96();
            emit OrderPeakRaised(orderId, order.agentId, price);
        }
    }

    /// @inheritdoc IOrderBook
    function endDeadOrders(Order[] calldata orders) external unlessExecuting {
        IPositionManager positions = IPositionManager(ITradeRouter(tradeRouter()).positionManager());
        for (uint256 i; i < orders.length; ++i) {
            Order calldata order = orders[i];
            bytes32 orderId = hashOrder(order);
            StoredOrder memory state = _orders[order.agentId][orderId];
            if (state.placedAt == 0) continue;
            (, uint32 buyEpoch, uint32 saleEpoch) = _agents.orderContextOf(order.agentId);
            if (state.epoch != (state.isBuy ? buyEpoch : saleEpoch)) {
                _end(order.agentId, orderId, OrderEnd.Voided);
            } else if (block.timestamp > order.validUntil) {
                _end(order.agentId, orderId, OrderEnd.Expired);
            } else if (state.positionId != 0 && positions.positionStateOf(state.positionId).tokenAmount == 0) {
                _end(order.agentId, orderId, OrderEnd.PositionClosed);
            }
        }
    }

    /// @inheritdoc IOrderBook
    function waitsFor(Order calldata order) public view returns (bytes memory) {
        try this.checkOrder(order) {
            return "";
        } catch (bytes memory reason) {
            return reason;
        }
    }

    /// @inheritdoc IOrderBook
    function checkOrder(Order calldata order) external view {
        bytes32 orderId = hashOrder(order);
        address vault = _checkDue(order, orderId, _orders[order.agentId][orderId]);
        if (!_isExecutor(tradeRouter(), address(this))) {
            revert IAccessControl.AccessControlUnauthorizedAccount(address(this), EXECUTOR_ROLE);
        }
        (address oracle, uint256 maxAge,,) = IMandateVault(vault).sellContextOf(order.token);
        IPriceOracle(oracle).freshPrice(order.token, maxAge);
    }

    /// @inheritdoc IOrderBook
    function orderStateOf(uint256 agentId, bytes32 orderId) external view returns (OrderState memory) {
        StoredOrder memory state = _orders[agentId][orderId];
        return OrderState({
            peak: state.peak,
            positionId: state.positionId,
            epoch: state.epoch,
            placedAt: state.placedAt,
            nextAt: state.nextAt,
            partsDone: state.partsDone
        });
    }

    /// @inheritdoc IOrderBook
    function openOrderCount(uint256 agentId) external view returns (uint256) {
        OpenOrders memory open = _openOrdersOf(agentId);
        return uint256(open.buys) + open.sales;
    }

    /// @inheritdoc IOrderBook
    function executionOf(uint256 agentId) external view returns (uint256) {
        uint256 execution = _execution;
        // forge-lint: disable-next-line(unsafe-typecast): `_startExecution` packs an agent id of 56 bits
        return agentId == uint56(execution) ? execution : 0;
    }

    /// @inheritdoc IOrderBook
    function agentRegistry() external view returns (address) {
        return address(_agents);
    }

    /// @inheritdoc IOrderBook
    function tradeRouter() public view returns (address) {
        return _allocations.tradeRouter();
    }

    /// @inheritdoc IOrderBook
    function hashOrder(Order calldata order) public view returns (bytes32) {
        bytes32 typehash = PLACE_ORDER_TYPEHASH;
        bytes32 exitsHash = order.exits.hashExits();
        bytes32 structHash;
        // The struct's 18 words are those of the typed data, but for the exits: their offset is where their hash goes.
        assembly ("memory-safe") {
            let words := mload(0x40)
            mstore(words, typehash)
            calldatacopy(add(words, 0x20), order, 0x240)
            mstore(add(words, 0xe0), exitsHash)
            structHash := keccak256(words, 0x260)
        }
        return _hashTypedDataV4(structHash);
    }

    /// @inheritdoc IOrderBook
    function hashCancelOrder(CancelOrderIntent calldata intent) public view returns (bytes32) {
        return _hashTypedDataV4(keccak256(abi.encode(CANCEL_ORDER_TYPEHASH, intent)));
    }

    function _execute(Order calldata order, address keeper) private returns (uint256 amount) {
        bytes32 orderId = hashOrder(order);
        StoredOrder storage stored = _orders[order.agentId][orderId];
        StoredOrder memory state = stored;
        address vault = _checkDue(order, orderId, state);

        uint256 part = state.partsDone + 1;
        uint256 positionId = state.positionId;
        bool isLast = part == order.parts;
        if (isLast) {
            _free(stored, order.agentId, state);
        } else {
            stored.partsDone = part.toUint8();
            stored.nextAt = (block.timestamp + order.interval).toUint40();
        }

        ITradeRouter router = _startExecution(order.agentId, keeper, _dueSince(orderId, state));
        (positionId, amount) = _trade(router, order, vault, positionId, part);
        _execution = 0;

        if (state.positionId == 0 && !isLast) stored.positionId = positionId.toUint32();
        emit OrderExecuted(orderId, order.agentId, positionId, part, amount, keeper);
    }

    /// @dev The router asks for this. It keeps an executor to what was signed; a stranger, who may move the pool before and after,
    /// gets the slippage of an exit that is due as long.
    function _startExecution(uint256 agentId, address keeper, uint256 dueSince) private returns (ITradeRouter router) {
        router = ITradeRouter(tradeRouter());
        if (_isExecutor(address(router), keeper)) dueSince = 0;
        _execution = uint256(uint160(keeper)) << 96 | dueSince << 56 | agentId;
    }

    function _replace(uint256 agentId, uint256 key, bytes32 orderId) private {
        bytes32 previous = orderIdOf[agentId][key];
        orderIdOf[agentId][key] = orderId;
        if (_orders[agentId][previous].placedAt != 0) _end(agentId, previous, OrderEnd.Replaced);
    }

    /// @dev Takes one of the agent's places. Returns the epoch in which it does.
    function _takePlace(Order calldata order) private returns (uint32) {
        OpenOrders memory open = _openOrdersOf(order.agentId);
        bool isBuy = _isBuy(order);
        if (isBuy) ++open.buys;
        else ++open.sales;
        if (uint256(open.buys) + open.sales > MAX_OPEN_ORDERS) {
            revert TooManyOpenOrders(order.agentId, MAX_OPEN_ORDERS);
        }
        _openOrders[order.agentId] = open;
        return isBuy ? open.buyEpoch : open.saleEpoch;
    }

    function _end(uint256 agentId, bytes32 orderId, OrderEnd reason) private {
        StoredOrder storage stored = _orders[agentId][orderId];
        _free(stored, agentId, stored);
        emit OrderEnded(orderId, agentId, reason);
    }

    /// @dev The state is one slot.
    function _free(StoredOrder storage stored, uint256 agentId, StoredOrder memory state) private {
        assembly ("memory-safe") {
            sstore(stored.slot, 0)
        }
        OpenOrders storage open = _openOrders[agentId];
        if (state.isBuy) {
            if (state.epoch == open.buyEpoch) --open.buys;
        } else if (state.epoch == open.saleEpoch) {
            --open.sales;
        }
    }

    /// @dev Trades one part through the router, which passes `ORDER_NONCE` on to `IAllocationManager.authorize`.
    function _trade(ITradeRouter router, Order calldata order, address vault, uint256 positionId, uint256 part)
        private
        returns (uint256, uint256)
    {
        if (!_isBuy(order)) {
            ITradeRouter.ReducePositionIntent memory reduction = ITradeRouter.ReducePositionIntent({
                agentId: order.agentId,
                positionId: positionId,
                exitBps: OrderParts.shareOf(order.exitBps, order.parts, part).toUint16(),
                deadline: block.timestamp,
                nonce: ORDER_NONCE
            });
            return (positionId, router.reducePosition(reduction, ""));
        }
        uint256 usdcAmount = OrderParts.usdcOf(order.usdcAmount, order.parts, part);
        if (positionId != 0) {
            ITradeRouter.AddToPositionIntent memory addition = ITradeRouter.AddToPositionIntent({
                agentId: order.agentId,
                positionId: positionId,
                usdcAmount: usdcAmount,
                minTokenOut: 0,
                maxSlippageBps: order.maxSlippageBps,
                deadline: block.timestamp,
                nonce: ORDER_NONCE
            });
            return (positionId, router.addToPosition(addition, ""));
        }
        ITradeRouter.PositionIntent memory opening = ITradeRouter.PositionIntent({
            agentId: order.agentId,
            vault: vault,
            token: order.token,
            usdcAmount: usdcAmount,
            minTokenOut: 0,
            maxSlippageBps: order.maxSlippageBps,
            exits: order.exits,
            deadline: block.timestamp,
            nonce: ORDER_NONCE
        });
        positionId = router.openPosition(opening, "");
        return (positionId, IPositionManager(router.positionManager()).positionStateOf(positionId).tokenAmount);
    }

    /// @dev When the slippage of a stranger began to widen. A record from before the part's time counts nothing.
    function _dueSince(bytes32 orderId, StoredOrder memory state) private view returns (uint256) {
        if (!state.isRecorded) return block.timestamp;
        DueOrder memory due = _dueOrders[orderId];
        bool isCurrent = due.since >= state.nextAt && block.timestamp <= due.seenAt + DUE_EXPIRY;
        return isCurrent ? due.since : block.timestamp;
    }

    function _isExecutor(address router, address account) private view returns (bool) {
        return IAccessControl(router).hasRole(EXECUTOR_ROLE, account);
    }

    /// @dev Reverts with what the order waits for.
    function _checkDue(Order calldata order, bytes32 orderId, StoredOrder memory state)
        private
        view
        returns (address vault)
    {
        if (state.placedAt == 0) revert OrderNotOpen(orderId);
        uint32 buyEpoch;
        uint32 saleEpoch;
        (vault, buyEpoch, saleEpoch) = _agents.orderContextOf(order.agentId);
        if (state.epoch != (_isBuy(order) ? buyEpoch : saleEpoch)) revert OrderIsVoid(orderId);
        if (block.timestamp > order.validUntil) revert OrderExpired(orderId, order.validUntil);
        if (block.timestamp < state.nextAt) revert OrderNotDue(orderId, state.nextAt);
        if (order.condition == uint8(Condition.None)) return vault;

        // The router refuses a price that is not fresh.
        IPriceOracle oracle = IPriceOracle(IMandateVault(vault).priceOracle());
        (uint256 price, uint256 observedAt,) = oracle.peekPrice(order.token);
        if (observedAt <= state.placedAt) revert PriceBeforeOrder(orderId, observedAt, state.placedAt);
        uint256 trigger =
            order.condition == uint8(Condition.Trailing) ? PriceMath.lessBps(state.peak, order.trailBps) : order.price;
        bool isMet = order.condition == uint8(Condition.AtOrAbove) ? price >= trigger : price <= trigger;
        if (!isMet) revert ConditionNotMet(orderId, price, trigger);
    }

    /// @dev The position must be the agent's own, open, and of the order's token.
    function _checkPosition(Order calldata order, ITradeRouter router) private view {
        uint256 id = order.positionId;
        IPositionManager.PositionState memory position = IPositionManager(router.positionManager()).positionStateOf(id);
        if (position.agentId != order.agentId) revert ITradeRouter.PositionAgentMismatch(id, order.agentId);
        if (position.tokenAmount == 0) revert ITradeRouter.PositionNotOpen(id);
        if (position.token != order.token) revert PositionTokenMismatch(id, position.token, order.token);
    }

    /// @dev The last known price counts as seen, however old: it is the highest one when the next one is lower.
    function _firstPeak(Order calldata order, address vault) private view returns (uint96) {
        if (order.condition != uint8(Condition.Trailing)) return 0;
        (address oracle,,,) = IMandateVault(vault).sellContextOf(order.token);
        (uint256 price,,) = IPriceOracle(oracle).peekPrice(order.token);
        return price >= order.price ? price.toUint96() : 0;
    }

    /// @dev Both are 0 for a stale price.
    function _priceIfFresh(address vault, address token) private view returns (uint256 price, uint256 observedAt) {
        (address oracle, uint256 maxAge,,) = IMandateVault(vault).sellContextOf(token);
        if (!IPriceOracle(oracle).isStale(token, maxAge)) {
            (price, observedAt,) = IPriceOracle(oracle).peekPrice(token);
        }
    }

    /// @dev In the agent's present epochs.
    function _openOrdersOf(uint256 agentId) private view returns (OpenOrders memory open) {
        open = _openOrders[agentId];
        (, uint32 buyEpoch, uint32 saleEpoch) = _agents.orderContextOf(agentId);
        if (open.buyEpoch != buyEpoch) (open.buyEpoch, open.buys) = (buyEpoch, 0);
        if (open.saleEpoch != saleEpoch) (open.saleEpoch, open.sales) = (saleEpoch, 0);
    }

    function _checkContent(Order calldata order) private view {
        bool isBuy = _isBuy(order);
        bool isNew = order.side == uint8(Side.Open);
        bool isTrailing = order.condition == uint8(Condition.Trailing);
        _check(order.side <= uint8(type(Side).max), 1, order.side);
        _check(order.token != address(0), 2, 0);
        _check(isNew == (order.positionId == 0), 3, order.positionId);
        _check(isBuy ? order.usdcAmount >= order.parts : order.usdcAmount == 0, 4, order.usdcAmount);
        bool isShare = order.exitBps >= order.parts && order.exitBps <= PriceMath.BPS;
        _check(isBuy ? order.exitBps == 0 : isShare, 5, order.exitBps);
        bool isLadder = order.exits.length != 0 && order.exits.length <= ExitLadder.MAX_RULES;
        _check(isNew ? isLadder : order.exits.length == 0, 6, order.exits.length);
        _check(isBuy ? order.maxSlippageBps <= PriceMath.BPS : order.maxSlippageBps == 0, 7, order.maxSlippageBps);
        _check(order.condition <= uint8(type(Condition).max) && !(isTrailing && isBuy), 8, order.condition);
        bool isPrice = order.price <= type(uint96).max;
        bool needsPrice = !isTrailing && order.condition != uint8(Condition.None);
        if (needsPrice) isPrice = isPrice && order.price != 0;
        else if (!isTrailing) isPrice = order.price == 0;
        _check(isPrice, 9, order.price);
        bool isTrail = order.trailBps != 0 && order.trailBps < PriceMath.BPS;
        _check(isTrailing ? isTrail : order.trailBps == 0, 10, order.trailBps);
        _check(order.validUntil >= block.timestamp && order.validUntil <= type(uint40).max, 12, order.validUntil);
        _check(order.validAfter <= order.validUntil, 11, order.validAfter);
        _check(order.parts != 0 && order.parts <= MAX_PARTS, 13, order.parts);
        bool isInterval = order.interval >= MIN_INTERVAL && order.interval <= order.validUntil - block.timestamp;
        _check(order.parts == 1 ? order.interval == 0 : isInterval, 14, order.interval);
    }

    function _check(bool isValid, uint256 field, uint256 value) private pure {
        if (!isValid) revert InvalidOrder(field, value);
    }

    function _isBuy(Order calldata order) private pure returns (bool) {
        return order.side != uint8(Side.Reduce);
    }
}
