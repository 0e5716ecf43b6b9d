// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
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
import {MandateState} from "./libraries/MandateState.sol";
import {OpenBook} from "./libraries/OpenBook.sol";
import {OrderHash} from "./libraries/OrderHash.sol";
import {PriceMath} from "./libraries/PriceMath.sol";

/// @title Orders that wait on chain and trade through the router
/// @dev `IOrderBook` documents the functions. For the router, an execution is an intent like any other: the book builds it, and the
/// allocation manager asks the book for the digest in place of a signature and a nonce.
contract OrderBook is IOrderBook, EIP712, ReentrancyGuardTransient {
    using IntentHash for IPositionManager.ExitRule[];
    using MandateState for uint256;
    using OpenBook for OpenBook.Book;
    using OrderHash for OrderIntent;
    using OrderHash for CancelIntent;
    using SafeCast for uint256;

    /// @dev One slot, which every part writes.
    struct Progress {
        uint32 agentId;
        uint32 positionId;
        uint16 partsDone;
        uint40 nextAt;
        uint40 validUntil;
        uint40 placedAt;
        uint32 placedRound;
    }

    /// @dev One slot, of a trailing order only.
    struct Trail {
        address token;
        uint96 peak;
    }

    /// @dev What a check of an order reads about its agent.
    struct Agent {
        address signer;
        address vault;
        uint256 mandate;
        uint16 buyEpoch;
        uint16 sellEpoch;
    }

    /// @inheritdoc IOrderBook
    uint256 public constant MAX_OPEN_ORDERS = 20;

    /// @dev As in the router: a policy refuses no deadline this near.
    uint256 private constant MIN_DEADLINE_BOUND = 10 minutes;

    /// @dev The gas of one order of a batch, more than ten times what one costs.
    uint256 private constant MAX_ORDER_GAS = 3_000_000;

    bytes32 private constant EXECUTOR_ROLE = keccak256("EXECUTOR_ROLE");
    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant ROUTER_NAME = keccak256("Service TradeRouter");
    bytes32 private constant ROUTER_VERSION = keccak256("1");

    IAllocationManager private immutable _allocations;
    IAgentRegistry private immutable _agents;
    IPositionManager private immutable _positions;

    /// @inheritdoc IOrderBook
    uint256 public orderCount;

    /// @inheritdoc IOrderBook
    mapping(uint256 orderId => bytes32) public contentHashOf;

    mapping(uint256 orderId => Progress) private _progress;
    mapping(uint256 orderId => Trail) private _trails;
    mapping(uint256 agentId => OpenBook.Book) private _openBooks;
    mapping(uint256 agentId => mapping(bytes32 key => uint256)) private _idsByKey;

    /// @dev The intent under way, for `isExecuting`.
    bytes32 private transient _executing;

    modifier onlyExecutor() {
        _checkExecutor();
        _;
    }

    constructor(address allocationManager_, address agentRegistry_, address positionManager_)
        EIP712("Service OrderBook", "1")
    {
        if (allocationManager_ == address(0) || agentRegistry_ == address(0) || positionManager_ == address(0)) {
            revert ZeroAddress();
        }
        _allocations = IAllocationManager(allocationManager_);
        _agents = IAgentRegistry(agentRegistry_);
        _positions = IPositionManager(positionManager_);
    }

    /// @inheritdoc IOrderBook
    function placeOrder(OrderIntent calldata intent, bytes calldata signature)
        external
        onlyExecutor
        nonReentrant
        returns (uint256 orderId)
    {
        if (block.timestamp > intent.deadline) revert ITradeRouter.ExpiredDeadline();
        bool isBuy = intent.side != uint8(Side.Reduce);
        (address vault, uint8 track,,) =
            _allocations.authorize(intent.agentId, intent.nonce, _hashTypedDataV4(intent.hash()), signature, isBuy);
        Agent memory agent = _agentOf(intent.agentId);
        if (agent.mandate.closingSince() != 0) revert AgentIsClosing(intent.agentId);
        if (intent.deadline > block.timestamp + MIN_DEADLINE_BOUND) {
            ITradePolicy(_router().tradePolicy()).checkDeadline(vault, track, intent.deadline);
        }
        _checkForm(intent);
        if (intent.side != uint8(Side.Open)) _checkPosition(intent);

        _makeRoom(intent.agentId, intent.key);
        orderId = ++orderCount;
        PlacedOrder memory order = PlacedOrder(orderId, agent.signer, agent.buyEpoch, agent.sellEpoch, intent);
        contentHashOf[orderId] = keccak256(abi.encode(order));
        (uint256 peak, uint256 round) = _start(orderId, intent, vault);
        _openBooks[intent.agentId].add(orderId.toUint32(), 0);
        if (intent.key != 0) _idsByKey[intent.agentId][intent.key] = orderId;

        emit OrderPlaced(orderId, intent.agentId, intent.key, order, round, peak);
    }

    /// @inheritdoc IOrderBook
    function cancelOrder(CancelIntent calldata intent, bytes calldata signature) external onlyExecutor nonReentrant {
        if (block.timestamp > intent.deadline) revert ITradeRouter.ExpiredDeadline();
        _allocations.authorize(intent.agentId, intent.nonce, _hashTypedDataV4(intent.hash()), signature, false);
        if (contentHashOf[intent.orderId] == 0) revert OrderNotOpen(intent.orderId);
        if (_progress[intent.orderId].agentId != intent.agentId) {
            revert OrderAgentMismatch(intent.orderId, intent.agentId);
        }
        _end(intent.orderId, intent.agentId, EndReason.Cancelled);
    }

    /// @inheritdoc IOrderBook
    function cancelOrderBySelf(uint256 orderId) external nonReentrant {
        if (contentHashOf[orderId] == 0) revert OrderNotOpen(orderId);
        uint256 agentId = _progress[orderId].agentId;
        if (msg.sender != _agents.signerOf(agentId) && msg.sender != _agents.ownerOf(agentId)) {
            revert ITradeRouter.NotOwnerOrSigner(agentId, msg.sender);
        }
        _end(orderId, agentId, EndReason.Cancelled);
    }

    /// @inheritdoc IOrderBook
    function executeOrder(PlacedOrder calldata order) external nonReentrant returns (OrderStatus status) {
        return _execute(order, msg.sender);
    }

    /// @inheritdoc IOrderBook
    function executeOrders(PlacedOrder[] calldata orders)
        external
        nonReentrant
        returns (OrderStatus[] memory statuses, bytes[] memory reasons)
    {
        statuses = new OrderStatus[](orders.length);
        reasons = new bytes[](orders.length);
        for (uint256 i; i < orders.length; ++i) {
            try this.executeOrderFor{gas: MAX_ORDER_GAS}(orders[i], msg.sender) returns (OrderStatus status) {
                statuses[i] = status;
            } catch (bytes memory reason) {
                statuses[i] = _statusOf(reason);
                reasons[i] = reason;
            }
        }
    }

    /// @notice Executes one order of a batch in a call of its own, so that it can fail alone; only the book itself
    function executeOrderFor(PlacedOrder calldata order, address keeper) external returns (OrderStatus status) {
        if (msg.sender != address(this)) revert OnlySelf(msg.sender);
        return _execute(order, keeper);
    }

    /// @inheritdoc IOrderBook
    function raisePeaks(uint256[] calldata orderIds) external {
        for (uint256 i; i < orderIds.length; ++i) {
            Trail memory trail = _trails[orderIds[i]];
            if (trail.token == address(0)) continue;
            Progress memory progress = _progress[orderIds[i]];
            if (progress.agentId == 0) continue;
            try this.freshPriceOf(_agents.vaultOf(progress.agentId), trail.token) returns (
                uint256 price, uint256 updatedAt, uint256 round
            ) {
                if (price <= trail.peak || !_isLater(progress, updatedAt, round)) continue;
                _trails[orderIds[i]].peak = Math.min(price, type(uint96).max).toUint96();
                emit PeakRaised(orderIds[i], price, round);
            } catch {}
        }
    }

    /// @notice Returns the price that counts for orders of a vault's agents; reverts when it is stale
    function freshPriceOf(address vault, address token)
        public
        view
        returns (uint256 price, uint256 updatedAt, uint256 round)
    {
        (address oracle, uint256 maxAge,,) = IMandateVault(vault).sellContextOf(token);
        return IPriceOracle(oracle).freshPrice(token, maxAge);
    }

    /// @inheritdoc IOrderBook
    function isExecuting(bytes32 digest) external view returns (bool) {
        return digest == _executing;
    }

    /// @inheritdoc IOrderBook
    function orderOf(uint256 orderId) external view returns (OrderState memory) {
        Progress memory progress = _progress[orderId];
        return OrderState({
            agentId: progress.agentId,
            positionId: progress.positionId,
            partsDone: progress.partsDone,
            nextAt: progress.nextAt,
            validUntil: progress.validUntil,
            placedAt: progress.placedAt,
            placedRound: progress.placedRound,
            peak: progress.agentId == 0 ? 0 : _trails[orderId].peak
        });
    }

    /// @inheritdoc IOrderBook
    function openOrderIdsOf(uint256 agentId) external view returns (uint256[] memory) {
        return _openBooks[agentId].ids();
    }

    /// @inheritdoc IOrderBook
    function orderIdByKey(uint256 agentId, bytes32 key) external view returns (uint256 orderId) {
        orderId = _idsByKey[agentId][key];
        if (contentHashOf[orderId] == 0) orderId = 0;
    }

    /// @inheritdoc IOrderBook
    function allocationManager() external view returns (address) {
        return address(_allocations);
    }

    /// @inheritdoc IOrderBook
    function agentRegistry() external view returns (address) {
        return address(_agents);
    }

    /// @inheritdoc IOrderBook
    function positionManager() external view returns (address) {
        return address(_positions);
    }

    function _execute(PlacedOrder calldata order, address keeper) private returns (OrderStatus) {
        uint256 orderId = order.orderId;
        bytes32 content = contentHashOf[orderId];
        if (content == 0) revert OrderNotOpen(orderId);
        if (content != keccak256(abi.encode(order))) revert OrderContentMismatch(orderId);
        Progress memory progress = _progress[orderId];
        Agent memory agent = _agentOf(progress.agentId);
        (bool isOver, EndReason reason) = _isOver(order, progress, agent);
        if (isOver) {
            _end(orderId, progress.agentId, reason);
            return OrderStatus.Ended;
        }
        if (block.timestamp < progress.nextAt || !_isConditionMet(orderId, order.intent, progress, agent.vault)) {
            revert OrderNotDue(orderId, progress.nextAt);
        }
        _executePart(orderId, order.intent, progress, agent.vault, keeper);
        return OrderStatus.Executed;
    }

    function _executePart(
        uint256 orderId,
        OrderIntent calldata intent,
        Progress memory progress,
        address vault,
        address keeper
    ) private {
        uint256 part = ++progress.partsDone;
        progress.nextAt = (block.timestamp + intent.interval).toUint40();
        bool isLast = part == intent.parts;
        if (isLast) _free(orderId, intent.agentId);
        else _progress[orderId] = progress;

        (uint256 positionId, uint256 usdcAmount) = _trade(intent, progress.positionId, part, vault, keeper);
        if (!isLast && progress.positionId == 0) _progress[orderId].positionId = positionId.toUint32();
        emit OrderPartExecuted(orderId, intent.agentId, positionId, keeper, part, usdcAmount);
        if (isLast) emit OrderEnded(orderId, intent.agentId, EndReason.Filled);
    }

    /// @return The position
    /// @return usdcAmount What a purchase spends, or what the vault keeps of a sale
    function _trade(OrderIntent calldata intent, uint256 positionId, uint256 part, address vault, address keeper)
        private
        returns (uint256, uint256 usdcAmount)
    {
        ITradeRouter router = _router();
        bytes memory proof = abi.encodePacked(this, keeper);
        if (intent.side == uint8(Side.Reduce)) {
            usdcAmount = _reduce(router, intent, positionId, part, proof);
        } else {
            uint256 share = intent.usdcAmount / intent.parts;
            usdcAmount = part == intent.parts ? intent.usdcAmount - share * (part - 1) : share;
            if (positionId == 0) positionId = _open(router, intent, vault, usdcAmount, proof);
            else _add(router, intent, positionId, usdcAmount, proof);
        }
        delete _executing;
        return (positionId, usdcAmount);
    }

    function _open(
        ITradeRouter router,
        OrderIntent calldata intent,
        address vault,
        uint256 usdcAmount,
        bytes memory proof
    ) private returns (uint256 positionId) {
        ITradeRouter.PositionIntent memory open = ITradeRouter.PositionIntent({
            agentId: intent.agentId,
            vault: vault,
            token: intent.token,
            usdcAmount: usdcAmount,
            minTokenOut: 0,
            maxSlippageBps: intent.maxSlippageBps,
            exits: intent.exits,
            deadline: block.timestamp,
            nonce: 0
        });
        bytes32 exitsHash = intent.exits.hashExits();
        bytes32 structHash = keccak256(
            abi.encode(
                IntentHash.OPEN_POSITION,
                open.agentId,
                open.vault,
                open.token,
                open.usdcAmount,
                open.minTokenOut,
                open.maxSlippageBps,
                exitsHash,
                open.deadline,
                open.nonce
            )
        );
        _announce(router, structHash);
        return router.openPosition(open, proof);
    }

    function _add(
        ITradeRouter router,
        OrderIntent calldata intent,
        uint256 positionId,
        uint256 usdcAmount,
        bytes memory proof
    ) private {
        ITradeRouter.AddToPositionIntent memory add = ITradeRouter.AddToPositionIntent({
            agentId: intent.agentId,
            positionId: positionId,
            usdcAmount: usdcAmount,
            minTokenOut: 0,
            maxSlippageBps: intent.maxSlippageBps,
            deadline: block.timestamp,
            nonce: 0
        });
        _announce(router, keccak256(abi.encode(IntentHash.ADD_TO_POSITION, add)));
        router.addToPosition(add, proof);
    }

    /// @dev Parts of equal size: of n parts that sell a share S, part i sells S / (n - (i - 1) S) of what the ones before it left.
    function _reduce(
        ITradeRouter router,
        OrderIntent calldata intent,
        uint256 positionId,
        uint256 part,
        bytes memory proof
    ) private returns (uint256 usdcOut) {
        uint256 share = intent.exitBps;
        uint256 exitBps = share * PriceMath.BPS / (intent.parts * PriceMath.BPS - (part - 1) * share);
        ITradeRouter.ReducePositionIntent memory reduce = ITradeRouter.ReducePositionIntent({
            agentId: intent.agentId,
            positionId: positionId,
            exitBps: exitBps.toUint16(),
            deadline: block.timestamp,
            nonce: 0
        });
        _announce(router, keccak256(abi.encode(IntentHash.REDUCE_POSITION, reduce)));
        return router.reducePosition(reduce, proof);
    }

    /// @dev From here until it is deleted, `isExecuting` confirms the intent.
    function _announce(ITradeRouter router, bytes32 structHash) private {
        bytes32 domain =
            keccak256(abi.encode(DOMAIN_TYPEHASH, ROUTER_NAME, ROUTER_VERSION, block.chainid, address(router)));
        _executing = MessageHashUtils.toTypedDataHash(domain, structHash);
    }

    /// @return peak Where a trailing order starts
    /// @return round The round after which prices count
    function _start(uint256 orderId, OrderIntent calldata intent, address vault)
        private
        returns (uint256 peak, uint256 round)
    {
        (address oracle, uint256 maxAge,,) = IMandateVault(vault).sellContextOf(intent.token);
        (peak,, round) = IPriceOracle(oracle).peekPrice(intent.token);
        _progress[orderId] = Progress({
            agentId: intent.agentId.toUint32(),
            positionId: intent.positionId.toUint32(),
            partsDone: 0,
            nextAt: intent.validAfter.toUint40(),
            validUntil: intent.validUntil.toUint40(),
            placedAt: block.timestamp.toUint40(),
            placedRound: round.toUint32()
        });
        if (intent.condition != uint8(Condition.Trailing) || IPriceOracle(oracle).isStale(intent.token, maxAge)) {
            peak = 0;
        }
        if (intent.condition == uint8(Condition.Trailing)) _trails[orderId] = Trail(intent.token, peak.toUint96());
    }

    /// @dev Ends the order with the same key, and the expired ones when the agent has no place left.
    function _makeRoom(uint256 agentId, bytes32 key) private {
        uint256 replaced = key == 0 ? 0 : _idsByKey[agentId][key];
        if (replaced != 0 && contentHashOf[replaced] != 0) _end(replaced, agentId, EndReason.Replaced);
        OpenBook.Book storage book = _openBooks[agentId];
        if (book.length() < MAX_OPEN_ORDERS) return;
        uint256[] memory ids = book.ids();
        for (uint256 i; i < ids.length; ++i) {
            if (block.timestamp > _progress[ids[i]].validUntil) _end(ids[i], agentId, EndReason.Expired);
        }
        if (book.length() >= MAX_OPEN_ORDERS) revert TooManyOpenOrders(agentId, MAX_OPEN_ORDERS);
    }

    function _end(uint256 orderId, uint256 agentId, EndReason reason) private {
        _free(orderId, agentId);
        emit OrderEnded(orderId, agentId, reason);
    }

    /// @dev Leaves the trail, which counts only with the progress.
    function _free(uint256 orderId, uint256 agentId) private {
        delete contentHashOf[orderId];
        delete _progress[orderId];
        _openBooks[agentId].remove(orderId);
    }

    function _isOver(PlacedOrder calldata order, Progress memory progress, Agent memory agent)
        private
        view
        returns (bool, EndReason)
    {
        if (block.timestamp > progress.validUntil) return (true, EndReason.Expired);
        if (agent.signer != order.signer) return (true, EndReason.SignerChanged);
        bool isStopped = agent.mandate.closingSince() != 0 || agent.sellEpoch != order.sellEpoch;
        if (order.intent.side != uint8(Side.Reduce)) {
            isStopped = isStopped || agent.mandate.mode() != uint8(IAgentRegistry.MandateMode.Trade)
                || agent.buyEpoch != order.buyEpoch;
        }
        if (isStopped) return (true, EndReason.Stopped);
        uint256 positionId = progress.positionId;
        bool isClosed = positionId != 0 && _positions.positionStateOf(positionId).tokenAmount == 0;
        return (isClosed, EndReason.PositionClosed);
    }

    function _isConditionMet(uint256 orderId, OrderIntent calldata intent, Progress memory progress, address vault)
        private
        view
        returns (bool)
    {
        uint8 condition = intent.condition;
        if (condition == uint8(Condition.None)) return true;
        (uint256 price, uint256 updatedAt, uint256 round) = freshPriceOf(vault, intent.token);
        if (!_isLater(progress, updatedAt, round)) return false;
        if (condition == uint8(Condition.AtOrBelow)) return price <= intent.triggerPrice;
        if (condition == uint8(Condition.AtOrAbove)) return price >= intent.triggerPrice;
        uint256 peak = _trails[orderId].peak;
        return peak >= intent.triggerPrice && price * PriceMath.BPS <= peak * (PriceMath.BPS - intent.trailBps);
    }

    function _checkPosition(OrderIntent calldata intent) private view {
        IPositionManager.PositionState memory position = _positions.positionStateOf(intent.positionId);
        if (position.agentId != intent.agentId) {
            revert ITradeRouter.PositionAgentMismatch(intent.positionId, intent.agentId);
        }
        if (position.tokenAmount == 0) revert ITradeRouter.PositionNotOpen(intent.positionId);
        _require(3, uint160(intent.token), intent.token == position.token);
    }

    function _agentOf(uint256 agentId) private view returns (Agent memory agent) {
        (agent.signer, agent.vault, agent.mandate, agent.buyEpoch, agent.sellEpoch) = _agents.orderContextOf(agentId);
    }

    function _router() private view returns (ITradeRouter) {
        return ITradeRouter(_allocations.tradeRouter());
    }

    function _checkExecutor() private view {
        if (!IAccessControl(address(_router())).hasRole(EXECUTOR_ROLE, msg.sender)) revert OnlyExecutor(msg.sender);
    }

    /// @dev Reverts with the first field that does not fit. What only the market or the track can refuse waits for the execution.
    function _checkForm(OrderIntent calldata intent) private view {
        (uint8 side, uint8 condition) = (intent.side, intent.condition);
        bool isOpen = side == uint8(Side.Open);
        bool isReduce = side == uint8(Side.Reduce);
        bool isTrailing = condition == uint8(Condition.Trailing);
        _require(2, side, side <= uint8(type(Side).max));
        _require(3, 0, intent.token != address(0));
        _require(4, intent.positionId, isOpen == (intent.positionId == 0));
        _require(5, intent.usdcAmount, isReduce ? intent.usdcAmount == 0 : intent.usdcAmount >= intent.parts);
        _require(
            6,
            intent.exitBps,
            isReduce ? intent.exitBps >= intent.parts && intent.exitBps <= PriceMath.BPS : intent.exitBps == 0
        );
        _require(
            7, intent.maxSlippageBps, isReduce ? intent.maxSlippageBps == 0 : intent.maxSlippageBps <= PriceMath.BPS
        );
        uint256 exits = intent.exits.length;
        _require(8, exits, isOpen == (exits != 0));
        if (exits > ExitLadder.MAX_RULES) revert ITradeRouter.TooManyExitRules(exits);
        _require(9, condition, condition <= uint8(type(Condition).max) && (isReduce || !isTrailing));
        uint256 price = intent.triggerPrice;
        bool isPriced = condition == uint8(Condition.AtOrBelow) || condition == uint8(Condition.AtOrAbove);
        _require(10, price, price <= type(uint96).max && (isTrailing || isPriced == (price != 0)));
        uint256 trail = intent.trailBps;
        _require(11, trail, isTrailing == (trail != 0) && trail < PriceMath.BPS);
        _require(12, intent.validAfter, intent.validAfter <= intent.validUntil);
        _require(13, intent.validUntil, intent.validUntil >= block.timestamp && intent.validUntil <= type(uint40).max);
        _require(14, intent.parts, intent.parts != 0);
        _require(15, intent.interval, (intent.parts > 1) == (intent.interval != 0));
    }

    /// @dev A price from before the order counts for nothing, see `ExitTrigger`.
    function _isLater(Progress memory progress, uint256 updatedAt, uint256 round) private pure returns (bool) {
        return round > progress.placedRound && updatedAt >= progress.placedAt;
    }

    function _require(uint256 field, uint256 value, bool isValid) private pure {
        if (!isValid) revert InvalidOrder(field, value);
    }

    function _statusOf(bytes memory reason) private pure returns (OrderStatus) {
        // The first four bytes are the error's selector; the rest are its values.
        // forge-lint: disable-next-line(unsafe-typecast)
        bytes4 selector = bytes4(reason);
        if (selector == OrderNotDue.selector) return OrderStatus.NotDue;
        if (selector == OrderNotOpen.selector || selector == OrderContentMismatch.selector) return OrderStatus.NotOpen;
        return OrderStatus.Refused;
    }
}
