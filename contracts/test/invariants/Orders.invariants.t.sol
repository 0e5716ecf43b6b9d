// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {StockToken} from "../../src/embedded/StockToken.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IOrderBook} from "../../src/interfaces/IOrderBook.sol";
import {IOwnerControls} from "../../src/interfaces/IOwnerControls.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {OrderTest} from "../orders/OrderTest.sol";

/// @notice One agent on real capital and one on paper place, cancel and execute orders, between trades, exits, pauses, stops,
/// statuses, prices and weekends. Strangers execute them as well, and an adversary moves the pools. Every execution is compared with
/// the same intent, signed at that moment, and with the test's own book.
contract OrderInvariants is OrderTest {
    uint256 private constant AGENTS = 2;

    /// @dev An order as the test follows it.
    struct Followed {
        bytes content;
        uint256 placedAt;
        uint256 nextAt;
        uint256 peak;
        uint256 partsDone;
        uint256 positionId;
        bool isEnded;
        uint256 dueSince;
        uint256 seenAt;
    }

    /// @param beyondIntents Executions where the same signed intent was refused
    /// @param missed Refusals of orders that the test's book holds for due, where the same signed intent passed
    /// @param early Executions that the test's book does not hold for due
    /// @param oversold Parts of a reduction that sold more than their share
    /// @param belowFloor Executions by strangers that brought less than the floor for strangers
    /// @param blocked Reductions, exits and stops that were refused with a fresh price and the pool at it
    struct Failures {
        uint256 beyondIntents;
        uint256 missed;
        uint256 early;
        uint256 oversold;
        uint256 belowFloor;
        uint256 blocked;
    }

    uint256[] private team;
    Followed[] private followed;
    mapping(bytes32 action => uint256) private done;
    Failures private failures;

    function setUp() public override {
        super.setUp();
        team.push(agentId);
        vm.prank(admin);
        tracks.setVaultTrackCapitalMode(address(vault), 0, uint8(IVaultTrackRegistry.CapitalMode.Simulated));
        team.push(_register(vm.addr(signerKey)));
        _useDefaultLimits();
        skip(5 minutes);
        _repeatPrices();

        bytes4[] memory actions = new bytes4[](25);
        actions[0] = this.open.selector;
        actions[1] = this.placeEntry.selector;
        actions[2] = this.placeEntry.selector;
        actions[3] = this.placeAddition.selector;
        actions[4] = this.placeSale.selector;
        actions[5] = this.placeSale.selector;
        actions[6] = this.placeSale.selector;
        actions[7] = this.execute.selector;
        actions[8] = this.execute.selector;
        actions[9] = this.execute.selector;
        actions[10] = this.execute.selector;
        actions[11] = this.cancel.selector;
        actions[12] = this.raise.selector;
        actions[13] = this.movePrice.selector;
        actions[14] = this.movePrice.selector;
        actions[15] = this.wait.selector;
        actions[16] = this.restrict.selector;
        actions[17] = this.mustReduce.selector;
        actions[18] = this.mustStop.selector;
        actions[19] = this.endDead.selector;
        actions[20] = this.execute.selector;
        actions[21] = this.recordDue.selector;
        actions[22] = this.recordDue.selector;
        actions[23] = this.pushPool.selector;
        actions[24] = this.weekend.selector;
        targetContract(address(this));
        targetSelector(FuzzSelector({addr: address(this), selectors: actions}));
    }

    // What agents sign

    function open(uint256 agent, uint256 token, uint256 amount) external {
        _as(agent);
        ITradeRouter.PositionIntent memory intent = _openIntent(_stock(token), bound(amount, USDC, 4_000 * USDC));
        bytes memory call = abi.encodeCall(router.openPosition, (intent, _sign(signerKey, _digest(intent))));
        vm.prank(executor);
        (bool success,) = address(router).call(call);
        if (success) ++done["open"];
    }

    function placeEntry(uint256 agent, uint256 token, uint256 amount, uint256 seed) external {
        _as(agent);
        _tryPlacing(_shaped(_entry(_stock(token), bound(amount, USDC, 4_000 * USDC)), seed));
    }

    function placeAddition(uint256 position, uint256 amount, uint256 seed) external {
        uint256 id = _position(position);
        if (id != 0) _tryPlacing(_shaped(_addition(id, bound(amount, USDC, 2_000 * USDC)), seed));
    }

    function placeSale(uint256 position, uint256 share, uint256 seed) external {
        uint256 id = _position(position);
        if (id == 0) return;
        uint16 exitBps = share % 2 == 0 ? 10_000 : uint16(bound(share, 100, 10_000));
        IOrderBook.Order memory order = _shaped(_sale(id, exitBps), seed);
        if (seed % 3 == 0) {
            (order.condition, order.trailBps) = (TRAILING, uint16(100 + (seed >> 24) % 900));
            if (seed % 2 == 0) order.price = 0;
        }
        _tryPlacing(order);
    }

    function cancel(uint256 index) external {
        if (followed.length == 0) return;
        Followed storage record = followed[index % followed.length];
        IOrderBook.Order memory order = _orderOf(record);
        agentId = order.agentId;
        bytes32 orderId = orderBook.hashOrder(order);
        (IOrderBook.CancelOrderIntent memory intent, bytes memory signature) = _cancelIntent(orderId, signerKey);
        (bool success,) = address(orderBook).call(abi.encodeCall(orderBook.cancelOrder, (intent, signature)));
        if (!success && !record.isEnded) ++failures.missed;
        record.isEnded = true;
        ++done["cancel"];
    }

    // What keepers and the market do

    function execute(uint256 index, bool byStranger) external {
        if (followed.length == 0) return;
        Followed storage record = followed[index % followed.length];
        IOrderBook.Order memory order = _orderOf(record);
        agentId = order.agentId;
        bool isDue = _isDue(record, order);
        bool isFair = _isPoolAt(order.token);
        (bool isSigned, bool isExecuted, bool isOversold) = _both(record, order, byStranger);
        if (isExecuted && !isSigned) ++failures.beyondIntents;
        if (isExecuted && !isDue) ++failures.early;
        if (!isExecuted && isDue && isSigned && (isFair || !byStranger)) ++failures.missed;
        if (!isExecuted) return;
        if (isOversold) ++failures.oversold;
        ++record.partsDone;
        record.nextAt = block.timestamp + order.interval;
        if (record.partsDone == order.parts) record.isEnded = true;
        if (order.side == OPEN) record.positionId = positions.openPositionId(agentId, order.token);
        ++done[byStranger ? bytes32("executeByStranger") : bytes32("execute")];
    }

    function recordDue(uint256 index) external {
        if (followed.length == 0) return;
        Followed storage record = followed[index % followed.length];
        IOrderBook.Order memory order = _orderOf(record);
        orderBook.recordDueOrders(_just(order));
        (, uint256 observedAt,) = oracle.peekPrice(order.token);
        bool isRecorded = _isDue(record, order) && block.timestamp <= observedAt + 1 hours;
        if (!isRecorded || block.timestamp < record.seenAt + 1 minutes) return;
        (record.dueSince, record.seenAt) = (_dueSince(record), block.timestamp);
        ++done["recordDue"];
    }

    /// @dev The adversary moves a pool and leaves the oracle behind.
    function pushPool(uint256 token, uint256 bps) external {
        StockToken pushed = _stock(token);
        (uint256 price,,) = oracle.peekPrice(address(pushed));
        market.moveTo(address(pushed), price * bound(bps, 9_880, 10_120) / 10_000);
        ++done["pushPool"];
    }

    /// @dev Markets are shut for 60 hours, and open at other prices.
    function weekend(uint256 bps) external {
        skip(60 hours);
        for (uint256 i; i < 2; ++i) {
            StockToken opened = _stock(i);
            (uint256 price,,) = oracle.peekPrice(address(opened));
            _setPrice(opened, bound(price * bound(bps >> (16 * i), 9_000, 11_000) / 10_000, USD, 100_000 * USD));
        }
        ++done["weekend"];
    }

    function raise(uint256 index) external {
        if (followed.length == 0) return;
        Followed storage record = followed[index % followed.length];
        IOrderBook.Order memory order = _orderOf(record);
        _raise(order);
        bool isOpen = _isOpen(order);
        if (order.condition != TRAILING || !isOpen) return;
        (uint256 price, uint256 observedAt,) = oracle.peekPrice(order.token);
        bool isFresh = block.timestamp <= observedAt + 1 hours && observedAt > record.placedAt;
        if (isFresh && price > record.peak && (record.peak != 0 || price >= order.price)) record.peak = price;
        ++done["raise"];
    }

    function endDead(uint256 index) external {
        if (followed.length == 0) return;
        Followed storage record = followed[index % followed.length];
        IOrderBook.Order memory order = _orderOf(record);
        orderBook.endDeadOrders(_just(order));
        if (_isOpen(order)) return;
        bool isClosed = record.positionId != 0 && _held(record.positionId) == 0;
        if (!record.isEnded && block.timestamp <= order.validUntil && !isClosed) ++failures.missed;
        record.isEnded = true;
    }

    function movePrice(uint256 token, uint256 bps) external {
        StockToken moved = _stock(token);
        (uint256 price,,) = oracle.peekPrice(address(moved));
        _setPrice(moved, bound(price * bound(bps, 9_500, 10_550) / 10_000, USD, 100_000 * USD));
        ++done["movePrice"];
    }

    function wait(uint256 time, bool isStale) external {
        skip(bound(time, 1, 90 minutes));
        if (!isStale) _repeatPrices();
        ++done["wait"];
    }

    /// @dev Pauses, statuses and mandates that come and go. A mandate that buys nothing ends the orders that buy.
    function restrict(uint256 agent, uint256 kind) external {
        _as(agent);
        if (kind % 4 == 0) {
            bool isPaused = vault.tradingPaused();
            _pauseTrading(!isPaused);
        } else if (kind % 4 == 1) {
            bool isActive = agents.statusOf(agentId) == uint8(IAgentRegistry.AgentStatus.Active);
            _setStatus(isActive ? IAgentRegistry.AgentStatus.Suspended : IAgentRegistry.AgentStatus.Active);
        } else if (kind % 4 == 2) {
            _stopBuying();
            _noteStop(false);
            _setMandate(_mandate(TRADE));
        } else {
            IOwnerControls.Mandate memory mandate = _mandate(TRADE);
            if (kind % 8 == 3) mandate.maxTradeUsdc = 1_000 * USDC;
            _setMandate(mandate);
        }
        ++done["restrict"];
    }

    // What no order may block: with a fresh price and the pool at it

    function mustReduce(uint256 position) external {
        if (vault.tradingPaused()) _pauseTrading(false);
        uint256 id = _position(position);
        if (id == 0) return;
        _repeatPrices();
        skip(5 minutes);
        _repeatPrices();
        bytes memory call;
        if (lens.isTriggerMet(id)) {
            call = abi.encodeCall(router.executeExit, (id));
        } else {
            ITradeRouter.ReducePositionIntent memory intent = _reduceIntent(id, 10_000);
            call = abi.encodeCall(router.reducePosition, (intent, _sign(signerKey, _digest(intent))));
        }
        vm.prank(executor);
        (bool success,) = address(router).call(call);
        if (!success) ++failures.blocked;
        ++done["mustReduce"];
    }

    function mustStop(uint256 agent, bool isAll) external {
        _as(agent);
        bytes memory call = isAll ? _closeCall(_only(agentId), ownerKey) : _stopCall(_only(agentId), ownerKey);
        (bool success,) = address(controls).call(call);
        if (!success) ++failures.blocked;
        _noteStop(isAll);
        _setMandate(_mandate(TRADE));
        ++done["mustStop"];
    }

    // What always holds

    /// forge-config: long.invariant.runs = 2048
    function invariant_AnOrderNeverPassesWhatItsAgentMayNotDo() public view {
        assertEq(failures.beyondIntents, 0, "an order passed where the signed intent was refused");
        assertEq(failures.early, 0, "an order executed that was not due");
        assertEq(failures.oversold, 0, "a reduction sold more than its share");
        assertEq(failures.belowFloor, 0, "a stranger got more than its floor allows");
    }

    /// forge-config: long.invariant.runs = 2048
    function invariant_AnOrderNeverBlocksAReductionAnExitOrAStop() public view {
        assertEq(failures.blocked, 0, "a reduction, an exit or a stop was blocked");
        assertEq(failures.missed, 0, "an order that was due was refused, or one that was not ended");
    }

    function invariant_TheBookAgreesWithTheReference() public view {
        uint256[AGENTS] memory open_;
        for (uint256 i; i < followed.length; ++i) {
            Followed storage record = followed[i];
            IOrderBook.Order memory order = _orderOf(record);
            IOrderBook.OrderState memory state = orderBook.orderStateOf(order.agentId, orderBook.hashOrder(order));
            if (state.placedAt == 0) continue;
            (, uint32 buyEpoch, uint32 saleEpoch) = agents.orderContextOf(order.agentId);
            if (state.epoch != (order.side == REDUCE ? saleEpoch : buyEpoch)) continue;
            assertEq(state.partsDone, record.partsDone, "parts");
            assertEq(state.peak, record.peak, "peak");
            ++open_[order.agentId == team[0] ? 0 : 1];
        }
        for (uint256 i; i < AGENTS; ++i) {
            assertEq(orderBook.openOrderCount(team[i]), open_[i], "open orders");
            assertLe(open_[i], 20);
        }
        _assertIdle();
    }

    function _tryPlacing(IOrderBook.Order memory order) private {
        bytes memory call = abi.encodeCall(orderBook.placeOrder, (order, _sign(signerKey, _orderDigest(order))));
        bytes32 replaced = order.key == 0 ? bytes32(0) : orderBook.orderIdOf(agentId, order.key);
        (bool success,) = address(orderBook).call(call);
        if (!success) return;
        (uint256 price,,) = oracle.peekPrice(order.token);
        bool hasPeak = order.condition == TRAILING && price >= order.price;
        followed.push(
            Followed(
                abi.encode(order),
                block.timestamp,
                order.validAfter,
                hasPeak ? price : 0,
                0,
                order.positionId,
                false,
                0,
                0
            )
        );
        for (uint256 i; replaced != 0 && i < followed.length; ++i) {
            if (orderBook.hashOrder(_orderOf(followed[i])) == replaced) followed[i].isEnded = true;
        }
        ++done["place"];
    }

    function _shaped(IOrderBook.Order memory order, uint256 seed) private view returns (IOrderBook.Order memory) {
        (uint256 price,,) = oracle.peekPrice(order.token);
        order.price = price * (9_600 + (seed >> 8) % 800) / 10_000;
        order.condition = uint8(seed % 3);
        if (order.condition == NONE) order.price = 0;
        if ((seed >> 16) % 3 == 0) (order.parts, order.interval) = (uint8(2 + (seed >> 32) % 4), 10 minutes);
        if ((seed >> 40) % 4 == 0) order.validAfter = block.timestamp + (seed >> 48) % 1 hours;
        order.validUntil = block.timestamp + 1 hours + (seed >> 64) % 2 days;
        if ((seed >> 96) % 3 == 0) order.key = 1 + (seed >> 100) % 3;
        return order;
    }

    /// @dev Signs the same intent and sends it, undoes that, and executes the order.
    function _both(Followed storage record, IOrderBook.Order memory order, bool byStranger)
        private
        returns (bool isSigned, bool isExecuted, bool isOversold)
    {
        bytes memory call = _intentOf(record, order);
        uint256 held = record.positionId == 0 ? 0 : _held(record.positionId);
        uint256 snapshot = vm.snapshotState();
        vm.prank(executor);
        (isSigned,) = address(router).call(call);
        vm.revertToState(snapshot);
        vm.prank(byStranger ? keeper : executor);
        bytes memory result;
        (isExecuted, result) = address(orderBook).call(abi.encodeCall(orderBook.executeOrder, (order)));
        if (!isExecuted) return (isSigned, false, false);
        uint256 left = order.side == REDUCE ? _held(record.positionId) : 0;
        uint256 paid = order.side == REDUCE ? held - left : _usdcOf(record, order);
        if (byStranger) _checkFloor(record, order, paid, abi.decode(result, (uint256)));
        if (order.side != REDUCE) return (isSigned, isExecuted, false);
        // The router sells all when the rest is worth nothing.
        isOversold = left != 0 && held - left > held * _bps(record, order) / 10_000;
    }

    /// @dev The slippage of an exit that is due as long, and never more than the signed one, which is 1 % here.
    function _checkFloor(Followed storage record, IOrderBook.Order memory order, uint256 paid, uint256 received)
        private
    {
        uint256 slippage = tradePolicy.exitSlippageBps(address(vault), 0, _dueSince(record));
        if (slippage > 100) slippage = 100;
        (uint256 price,,) = oracle.peekPrice(order.token);
        uint256 scale = 100 * 10 ** StockToken(order.token).decimals();
        uint256 fair = order.side == REDUCE ? paid * price / scale : paid * scale / price;
        // A unit of the token of a sale is forgiven, and each division rounds.
        uint256 unit = order.side == REDUCE ? price / scale + 2 : 1;
        if (received + unit < fair * (10_000 - slippage) / 10_000) ++failures.belowFloor;
    }

    function _dueSince(Followed storage record) private view returns (uint256) {
        bool isCurrent =
            record.seenAt != 0 && record.dueSince >= record.nextAt && block.timestamp <= record.seenAt + 15 minutes;
        return isCurrent ? record.dueSince : block.timestamp;
    }

    /// @dev Within 0.1 % of the oracle.
    function _isPoolAt(address token) private view returns (bool) {
        (uint256 price,,) = oracle.peekPrice(token);
        (uint256 spot,) = adapter.pricesOf(token, 0);
        return spot * 1_000 <= price * 1_001 && spot * 1_000 >= price * 999;
    }

    function _usdcOf(Followed storage record, IOrderBook.Order memory order) private view returns (uint256) {
        uint256 each = order.usdcAmount / order.parts;
        return record.partsDone + 1 == order.parts ? order.usdcAmount - each * record.partsDone : each;
    }

    function _intentOf(Followed storage record, IOrderBook.Order memory order) private view returns (bytes memory) {
        uint256 amount = _usdcOf(record, order);
        if (order.side == REDUCE) {
            ITradeRouter.ReducePositionIntent memory reduction =
                _reduceIntent(record.positionId, uint16(_bps(record, order)));
            return abi.encodeCall(router.reducePosition, (reduction, _sign(signerKey, _digest(reduction))));
        }
        if (record.positionId != 0) {
            ITradeRouter.AddToPositionIntent memory addition = _addIntent(record.positionId, amount);
            return abi.encodeCall(router.addToPosition, (addition, _sign(signerKey, _digest(addition))));
        }
        ITradeRouter.PositionIntent memory opening = _openIntent(StockToken(order.token), amount);
        return abi.encodeCall(router.openPosition, (opening, _sign(signerKey, _digest(opening))));
    }

    /// @dev The share of what is left that makes all parts equal; never more than all of it.
    function _bps(Followed storage record, IOrderBook.Order memory order) private view returns (uint256) {
        if (record.partsDone >= order.parts) return 10_000;
        uint256 sold = uint256(order.exitBps) * record.partsDone / order.parts;
        uint256 next = uint256(order.exitBps) * (record.partsDone + 1) / order.parts;
        return ((next - sold) * 10_000 + (10_000 - sold) / 2) / (10_000 - sold);
    }

    function _isDue(Followed storage record, IOrderBook.Order memory order) private view returns (bool) {
        if (record.isEnded || block.timestamp > order.validUntil || block.timestamp < record.nextAt) return false;
        if (order.condition == NONE) return true;
        (uint256 price, uint256 observedAt,) = oracle.peekPrice(order.token);
        if (observedAt <= record.placedAt || block.timestamp > observedAt + 1 hours) return false;
        if (order.condition == BELOW) return price <= order.price;
        if (order.condition == ABOVE) return price >= order.price;
        return record.peak != 0 && price * 10_000 <= record.peak * (10_000 - order.trailBps);
    }

    /// @dev Ends the orders that buy, or all.
    function _noteStop(bool isAll) private {
        for (uint256 i; i < followed.length; ++i) {
            IOrderBook.Order memory order = _orderOf(followed[i]);
            if (order.agentId == agentId && (isAll || order.side != REDUCE)) followed[i].isEnded = true;
        }
    }

    function _orderOf(Followed storage record) private view returns (IOrderBook.Order memory) {
        return abi.decode(record.content, (IOrderBook.Order));
    }

    function _as(uint256 agent) private {
        agentId = team[agent % AGENTS];
    }

    /// @dev An open position, whose agent acts from now on; 0 when there is none.
    function _position(uint256 seed) private returns (uint256) {
        for (uint256 i; i < AGENTS; ++i) {
            _as(seed % AGENTS + i);
            uint256[] memory ids = positions.getOpenPositionIds(agentId);
            if (ids.length != 0) return ids[(seed >> 8) % ids.length];
        }
        return 0;
    }

    function _repeatPrices() private {
        (uint256 price,,) = oracle.peekPrice(address(nvda));
        _setOraclePrice(nvda, price);
        market.moveTo(address(nvda), price);
        (price,,) = oracle.peekPrice(address(tsla));
        _setOraclePrice(tsla, price);
        market.moveTo(address(tsla), price);
    }

    function _stock(uint256 seed) private view returns (StockToken) {
        return seed % 2 == 0 ? nvda : tsla;
    }
}
