// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {IAllocationManager} from "../interfaces/IAllocationManager.sol";
import {ITradeRouter} from "../interfaces/ITradeRouter.sol";

/// @title What each agent signed and did: nonces, daily figures and the record on the present track
/// @notice The records outlive the router, so a new one continues them. `ITradeRouter` documents the figures; USDC amounts
/// have 6 decimals.
abstract contract AgentLedger is IAllocationManager {
    using SafeCast for uint256;
    using SafeCast for int256;

    /// @dev One slot, written by every call of the agent: its nonce, its trades, and what it did on its last trading day.
    /// 56 bits hold 72 billion USDC. `bounty` is what keepers got for its exits on that day.
    struct Account {
        uint32 nonce;
        uint32 trades;
        uint24 day;
        uint56 turnover;
        int56 realizedPnl;
        uint56 bounty;
    }

    /// @dev One slot, all that a buy reads of the past: the agent's present track without its last trading day, and the
    /// trading day before that one, in whole USDC rounded up. 56 bits hold 36 billion USDC, signed.
    struct History {
        uint56 turnover;
        int56 realizedPnl;
        uint56 peakRealizedPnl;
        uint24 day;
        uint32 dayTurnover;
        uint32 dayLoss;
    }

    /// @dev One slot, written by a promotion: the agent's earlier tracks; and of the present one, how much loss its
    /// first-loss capital has paid.
    struct Archive {
        uint64 turnover;
        int64 realizedPnl;
        uint32 trades;
        uint40 enteredAt;
        uint56 lossPaid;
    }

    /// @dev One slot per agent and past trading day. The worst figures are those of the track until the end of the day.
    struct Day {
        uint64 turnover;
        int64 realizedPnl;
        uint64 worstDrawdown;
        uint64 worstDayLoss;
    }

    /// @dev What a buy is measured against: the track's realized PnL and its peak, and yesterday's part of the last 24
    /// hours.
    struct Activity {
        int256 realizedPnl;
        uint256 peakRealizedPnl;
        uint256 turnover;
        uint256 loss;
    }

    uint256 private constant WHOLE_USDC = 1e6;

    mapping(uint256 agentId => Account) private _accounts;
    mapping(uint256 agentId => History) private _histories;
    mapping(uint256 agentId => Archive) private _archives;
    mapping(uint256 agentId => mapping(uint256 day => Day)) private _pastDays;

    /// @dev The worst drawdown of paper equity, open positions at the last price, seen at a trade on the present track.
    mapping(uint256 agentId => uint256) private _worstMarks;

    /// @inheritdoc IAllocationManager
    function nonces(uint256 agentId) external view returns (uint256) {
        return _accounts[agentId].nonce;
    }

    /// @inheritdoc IAllocationManager
    function dailyTurnoverUsdc(uint256 agentId, uint256 day) external view returns (uint256) {
        Account storage account = _accounts[agentId];
        return day == account.day ? account.turnover : _pastDays[agentId][day].turnover;
    }

    /// @inheritdoc IAllocationManager
    function dailyRealizedPnlUsdc(uint256 agentId, uint256 day) external view returns (int256) {
        Account storage account = _accounts[agentId];
        return day == account.day ? account.realizedPnl : _pastDays[agentId][day].realizedPnl;
    }

    /// @inheritdoc IAllocationManager
    function lifetimeRealizedPnlUsdc(uint256 agentId) external view returns (int256) {
        return _archives[agentId].realizedPnl + _trackPnl(agentId);
    }

    /// @inheritdoc IAllocationManager
    function lifetimeTurnoverUsdc(uint256 agentId) external view returns (uint256) {
        return uint256(_archives[agentId].turnover) + _histories[agentId].turnover + _accounts[agentId].turnover;
    }

    /// @inheritdoc IAllocationManager
    function tradeCount(uint256 agentId) external view returns (uint256) {
        return _accounts[agentId].trades;
    }

    /// @inheritdoc IAllocationManager
    function trackRecordOf(uint256 agentId) external view returns (TrackRecord memory) {
        History memory history = _histories[agentId];
        Account memory account = _accounts[agentId];
        Archive memory archive = _archives[agentId];
        Day memory last = _pastDays[agentId][history.day];
        int256 realizedPnl = _trackPnl(agentId);
        return TrackRecord({
            enteredAt: archive.enteredAt,
            trades: account.trades - archive.trades,
            realizedPnl: realizedPnl,
            peakRealizedPnl: history.peakRealizedPnl,
            worstDrawdown: Math.max(
                Math.max(last.worstDrawdown, _worstMarks[agentId]), _drawdown(history.peakRealizedPnl, realizedPnl)
            ),
            worstDayLoss: Math.max(last.worstDayLoss, _lossOf(account.realizedPnl))
        });
    }

    function _useNonce(uint256 agentId, uint256 nonce) internal {
        Account storage account = _accounts[agentId];
        uint32 expected = account.nonce;
        if (nonce != expected) revert ITradeRouter.InvalidNonce(expected, nonce);
        account.nonce = expected + 1;
    }

    /// @dev Starts a new track record.
    function _enterTrack(uint256 agentId) internal {
        History memory history = _histories[agentId];
        Account memory account = _accounts[agentId];
        Archive storage archive = _archives[agentId];
        archive.turnover += history.turnover;
        archive.realizedPnl += history.realizedPnl + account.realizedPnl;
        archive.trades = account.trades;
        archive.enteredAt = block.timestamp.toUint40();
        archive.lossPaid = 0;
        delete _worstMarks[agentId];

        // The last trading day stays in the account and counts later: its PnL is taken off in advance.
        history.turnover = 0;
        history.realizedPnl = int256(-account.realizedPnl).toInt56();
        history.peakRealizedPnl = 0;
        _histories[agentId] = history;
        Day storage last = _pastDays[agentId][history.day];
        last.worstDrawdown = 0;
        last.worstDayLoss = 0;
    }

    /// @dev The agent's account, on today's page, and its activity so far.
    function _openAccount(uint256 agentId) internal returns (Account memory account, Activity memory activity) {
        account = _accounts[agentId];
        History memory history = _histories[agentId];
        if (account.day != _today()) _startDay(agentId, account, history);
        activity = _activityOf(account, history);
    }

    function _recordBuy(uint256 agentId, Account memory account, uint256 amount) internal {
        account.turnover += amount.toUint56();
        ++account.trades;
        _accounts[agentId] = account;
    }

    /// @dev Counts the drawdown of paper equity: `unrealizedPnl` is that of the open positions at the last prices.
    function _recordMark(uint256 agentId, int256 unrealizedPnl) internal {
        uint256 fall = _drawdown(_histories[agentId].peakRealizedPnl, _trackPnl(agentId) + unrealizedPnl);
        if (fall > _worstMarks[agentId]) _worstMarks[agentId] = fall;
    }

    /// @return due How much of the present track's loss first-loss capital has not paid yet; it counts as paid from now on
    function _recordLossPaid(uint256 agentId, uint256 loss) internal returns (uint256 due) {
        Archive storage archive = _archives[agentId];
        uint256 paid = archive.lossPaid;
        if (loss <= paid) return 0;
        archive.lossPaid = loss.toUint56();
        return loss - paid;
    }

    /// @dev Books a sale.
    /// @return bounty `wantedBounty`, bounded by what `maxBounty` leaves for today
    /// @return trackPnl The PnL realized on the track with this sale
    function _recordSale(uint256 agentId, uint256 usdcOut, uint256 released, uint256 wantedBounty, uint256 maxBounty)
        internal
        returns (uint256 bounty, int256 trackPnl)
    {
        Account memory account = _accounts[agentId];
        if (account.day != _today()) _startDay(agentId, account, _histories[agentId]);
        if (wantedBounty != 0) {
            bounty = Math.min(wantedBounty, Math.saturatingSub(maxBounty, account.bounty));
            account.bounty += bounty.toUint56();
        }
        int256 pnl = account.realizedPnl + (usdcOut - bounty).toInt256() - released.toInt256();
        account.realizedPnl = pnl.toInt56();
        ++account.trades;
        _accounts[agentId] = account;

        History storage history = _histories[agentId];
        trackPnl = history.realizedPnl + pnl;
        if (trackPnl > int256(uint256(history.peakRealizedPnl))) {
            history.peakRealizedPnl = trackPnl.toUint256().toUint56();
        }
    }

    /// @dev The PnL realized on the present track.
    function _trackPnl(uint256 agentId) internal view returns (int256) {
        return int256(_histories[agentId].realizedPnl) + _accounts[agentId].realizedPnl;
    }

    function _peakPnl(uint256 agentId) internal view returns (uint256) {
        return _histories[agentId].peakRealizedPnl;
    }

    /// @dev Closes the account's last trading day and starts today's.
    function _startDay(uint256 agentId, Account memory account, History memory history) private {
        if (account.turnover != 0 || account.realizedPnl != 0) _closeDay(agentId, account, history);
        account.day = _today().toUint24();
        account.turnover = 0;
        account.realizedPnl = 0;
        account.bounty = 0;
    }

    function _closeDay(uint256 agentId, Account memory account, History memory history) private {
        uint64 worstDrawdown;
        uint64 worstDayLoss;
        if (history.day != 0) {
            Day storage before = _pastDays[agentId][history.day];
            (worstDrawdown, worstDayLoss) = (before.worstDrawdown, before.worstDayLoss);
        }
        uint64 loss = _lossOf(account.realizedPnl).toUint64();
        history.turnover = (uint256(history.turnover) + account.turnover).toUint56();
        history.realizedPnl = (int256(history.realizedPnl) + account.realizedPnl).toInt56();
        history.day = account.day;
        history.dayTurnover = Math.ceilDiv(account.turnover, WHOLE_USDC).toUint32();
        history.dayLoss = Math.ceilDiv(loss, WHOLE_USDC).toUint32();
        _histories[agentId] = history;

        uint256 drawdown = _drawdown(history.peakRealizedPnl, history.realizedPnl);
        if (drawdown > worstDrawdown) worstDrawdown = drawdown.toUint64();
        if (loss > worstDayLoss) worstDayLoss = loss;
        _pastDays[agentId][account.day] = Day(account.turnover, account.realizedPnl, worstDrawdown, worstDayLoss);
    }

    /// @dev Today's figures, and of yesterday's the part that lies within the last 24 hours, as if it was spread evenly
    /// over the day: midnight does not give a second day's limits at once. Stricter than protocol.md.
    function _activityOf(Account memory account, History memory history)
        private
        view
        returns (Activity memory activity)
    {
        activity.realizedPnl = int256(history.realizedPnl) + account.realizedPnl;
        activity.peakRealizedPnl = history.peakRealizedPnl;
        activity.turnover = account.turnover;
        activity.loss = _lossOf(account.realizedPnl);
        if (history.day + 1 == account.day) {
            uint256 remaining = 1 days - block.timestamp % 1 days;
            activity.turnover += history.dayTurnover * WHOLE_USDC * remaining / 1 days;
            activity.loss += history.dayLoss * WHOLE_USDC * remaining / 1 days;
        }
    }

    function _today() private view returns (uint256) {
        return block.timestamp / 1 days;
    }

    function _drawdown(uint256 peak, int256 realizedPnl) internal pure returns (uint256) {
        int256 fall = peak.toInt256() - realizedPnl;
        return fall > 0 ? fall.toUint256() : 0;
    }

    function _lossOf(int256 pnl) internal pure returns (uint256) {
        return pnl < 0 ? (-pnl).toUint256() : 0;
    }
}
