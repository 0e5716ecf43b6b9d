// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {IAgentRegistry} from "./interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "./interfaces/IAllocationManager.sol";
import {IOwnerControls} from "./interfaces/IOwnerControls.sol";
import {IPositionManager} from "./interfaces/IPositionManager.sol";
import {IPromotionCriteria} from "./interfaces/IPromotionCriteria.sol";
import {ITradeRouter} from "./interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "./interfaces/IVaultTrackRegistry.sol";

/// @title The criteria of a promotion, computed from on-chain records; holds no state
/// @dev `IPromotionCriteria` documents the functions. The router is the one that the allocations trust at the time.
contract PromotionCriteria is IPromotionCriteria {
    using SafeCast for int256;

    uint256 private constant BPS = 10_000;
    uint256 private constant RETURN_POINTS = 60;
    uint256 private constant DRAWDOWN_POINTS = 40;

    /// @dev The return that earns all of its points.
    uint256 private constant FULL_RETURN_BPS = 500;

    IAgentRegistry private immutable _agents;
    IVaultTrackRegistry private immutable _tracks;
    IAllocationManager private immutable _allocations;

    constructor(address agentRegistry_) {
        _agents = IAgentRegistry(agentRegistry_);
        _tracks = IVaultTrackRegistry(_agents.vaultTrackRegistry());
        _allocations = IAllocationManager(_agents.allocationManager());
    }

    /// @inheritdoc IPromotionCriteria
    function check(uint256 agentId, uint8 toTrack) external view {
        Criteria memory c = _criteriaOf(agentId, toTrack);
        if (c.trades < c.minTrades) revert TooFewTrades(agentId, c.trades, c.minTrades);
        if (!_isPeriodOver(c)) revert EvaluationPeriodNotOver(agentId, c.enteredAt + c.evaluationPeriod);
        if (_isDrawdownBreached(c)) revert DrawdownLimitBreached(agentId, c.drawdownBps, c.maxDrawdownBps);
        if (_isDayLossBreached(c)) revert DailyLossLimitBreached(agentId, c.dayLossUsdc, c.maxDayLossUsdc);
        if (c.score < c.minScore) revert ScoreTooLow(agentId, c.score, c.minScore);
        if (c.openPositions != 0) revert OpenPositionsOfOtherMode(agentId, c.openPositions);
        if (c.firstLossUsdc < c.requiredFirstLossUsdc) {
            revert FirstLossMissing(agentId, c.firstLossUsdc, c.requiredFirstLossUsdc);
        }
        (bytes32 examination, bytes32 certificate) = examinationOf(agentId);
        if (examination != 0 && certificate == 0) revert ExaminationMissing(agentId, examination);
    }

    /// @inheritdoc IPromotionCriteria
    function criteriaOf(uint256 agentId) external view returns (Criteria memory) {
        return _criteriaOf(agentId, _agents.trackOf(agentId) + 1);
    }

    /// @inheritdoc IPromotionCriteria
    function scoreOf(uint256 agentId) external view returns (uint256) {
        return _criteriaOf(agentId, _agents.trackOf(agentId) + 1).score;
    }

    /// @inheritdoc IPromotionCriteria
    function examinationOf(uint256 agentId) public view returns (bytes32 examination, bytes32 certificate) {
        examination = _tracks.requiredExaminationOf(_agents.vaultOf(agentId), _agents.trackOf(agentId));
        if (examination == 0) return (0, 0);
        certificate = IOwnerControls(_agents.ownerControls()).certificateOf(agentId, examination);
    }

    function _criteriaOf(uint256 agentId, uint8 toTrack) private view returns (Criteria memory c) {
        IAllocationManager.Allocation memory allocation = _allocations.getAllocation(agentId);
        ITradeRouter router = ITradeRouter(_allocations.tradeRouter());
        IAllocationManager.TrackRecord memory done = _allocations.trackRecordOf(agentId);
        IVaultTrackRegistry.VaultTrackConfig memory config =
            _tracks.getVaultTrackConfig(allocation.vault, allocation.trackId);

        // Track ids fit in 8 bits: the registry of agents keeps them so.
        // forge-lint: disable-next-line(unsafe-typecast)
        c.fromTrack = uint8(allocation.trackId);
        c.toTrack = toTrack;
        c.trades = done.trades;
        c.minTrades = config.minTrades;
        c.enteredAt = done.enteredAt == 0 ? allocation.createdAt : done.enteredAt;
        c.evaluationPeriod = config.evaluationPeriod;
        c.minScore = config.promotionScore;
        c.realizedPnlUsdc = done.realizedPnl;
        IPositionManager positions = IPositionManager(router.positionManager());
        c.unrealizedPnlUsdc = positions.unrealizedPnlOf(agentId);
        c.holdingPnlUsdc = positions.holdingPnlOf(agentId, allocation.trackId);
        int256 fall = int256(done.peakRealizedPnl) - done.realizedPnl - c.unrealizedPnlUsdc;
        uint256 worst = fall > int256(done.worstDrawdown) ? fall.toUint256() : done.worstDrawdown;
        c.drawdownBps = _ratio(worst, allocation.cap + done.peakRealizedPnl);
        c.maxDrawdownBps = config.maxDrawdownBps;
        c.dayLossUsdc = done.worstDayLoss;
        c.maxDayLossUsdc = allocation.cap * config.maxDailyLossBps / BPS;
        c.score = _score(c, allocation.cap);
        c.openPositions = _positionsOfOtherMode(positions, agentId, allocation.vault, toTrack);
        (c.firstLossUsdc, c.requiredFirstLossUsdc) = _firstLoss(agentId, allocation.vault, toTrack);
        (bytes32 examination, bytes32 certificate) = examinationOf(agentId);
        c.isEligible = c.trades >= c.minTrades && _isPeriodOver(c) && !_isDrawdownBreached(c) && !_isDayLossBreached(c)
            && c.score >= c.minScore && c.openPositions == 0 && c.firstLossUsdc >= c.requiredFirstLossUsdc
            && (examination == 0 || certificate != 0);
    }

    function _firstLoss(uint256 agentId, address vault, uint8 toTrack)
        private
        view
        returns (uint256 locked, uint256 required)
    {
        if (!_tracks.isVaultTrackActive(vault, toTrack)) return (0, 0);
        (,, locked,) = _allocations.firstLossOf(agentId);
        required = _allocations.requiredFirstLossUsdc(agentId, toTrack);
    }

    /// @dev The positions' own mode counts, so that none is left behind whatever the tracks' modes were.
    function _positionsOfOtherMode(IPositionManager positions, uint256 agentId, address vault, uint8 toTrack)
        private
        view
        returns (uint256 count)
    {
        uint256[] memory ids = positions.getOpenPositionIds(agentId);
        if (ids.length == 0 || !_tracks.isVaultTrackActive(vault, toTrack)) return 0;
        uint8 mode = _tracks.capitalModeOf(vault, toTrack);
        for (uint256 i; i < ids.length; ++i) {
            if (positions.capitalModeOf(ids[i]) != mode) ++count;
        }
    }

    function _isPeriodOver(Criteria memory c) private view returns (bool) {
        return block.timestamp >= c.enteredAt + c.evaluationPeriod;
    }

    function _isDrawdownBreached(Criteria memory c) private pure returns (bool) {
        return c.maxDrawdownBps != 0 && c.drawdownBps > c.maxDrawdownBps;
    }

    function _isDayLossBreached(Criteria memory c) private pure returns (bool) {
        return c.maxDayLossUsdc != 0 && c.dayLossUsdc >= c.maxDayLossUsdc;
    }

    function _score(Criteria memory c, uint256 cap) private pure returns (uint256) {
        int256 profit = c.realizedPnlUsdc;
        if (c.unrealizedPnlUsdc < 0) profit += c.unrealizedPnlUsdc;
        if (c.holdingPnlUsdc > 0) profit -= c.holdingPnlUsdc;
        if (profit <= 0 || cap == 0) return 0;
        uint256 returnBps = Math.min(profit.toUint256() * BPS / cap, FULL_RETURN_BPS);
        uint256 unused = DRAWDOWN_POINTS;
        if (c.maxDrawdownBps != 0) {
            uint256 left = Math.saturatingSub(c.maxDrawdownBps, c.drawdownBps);
            unused = DRAWDOWN_POINTS * left / c.maxDrawdownBps;
        }
        return RETURN_POINTS * returnBps / FULL_RETURN_BPS + unused;
    }

    /// @dev Rounded up: a drawdown just beyond a limit is beyond it.
    function _ratio(uint256 part, uint256 whole) private pure returns (uint256) {
        return whole == 0 ? 0 : Math.ceilDiv(part * BPS, whole);
    }
}
