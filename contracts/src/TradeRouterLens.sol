// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {IAgentRegistry} from "./interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "./interfaces/IAllocationManager.sol";
import {IMandateVault} from "./interfaces/IMandateVault.sol";
import {IPositionManager} from "./interfaces/IPositionManager.sol";
import {IPriceOracle} from "./interfaces/IPriceOracle.sol";
import {ITradePolicy} from "./interfaces/ITradePolicy.sol";
import {ITradeRouter} from "./interfaces/ITradeRouter.sol";
import {ITradeRouterLens} from "./interfaces/ITradeRouterLens.sol";
import {ExitLadder} from "./libraries/ExitLadder.sol";
import {ExitTrigger} from "./libraries/ExitTrigger.sol";
import {MandateState} from "./libraries/MandateState.sol";
import {PriceMath} from "./libraries/PriceMath.sol";

/// @title Reads over one trade router; holds nothing
/// @dev `ITradeRouterLens` documents the functions.
contract TradeRouterLens is ITradeRouterLens {
    using ExitLadder for uint256;
    using ExitTrigger for IPositionManager.PositionState;
    using MandateState for uint256;
    using SafeCast for uint256;
    using SafeCast for int256;

    /// @inheritdoc ITradeRouterLens
    uint8 public constant CLOSE_ALL_RULE = type(uint8).max;

    /// @dev The router's: a record of a due exit that is older than this starts over.
    uint256 private constant DUE_EXPIRY = 15 minutes;

    ITradeRouter private immutable _router;
    IAgentRegistry private immutable _agents;
    IAllocationManager private immutable _allocations;
    IPositionManager private immutable _positions;

    constructor(address tradeRouter_) {
        _router = ITradeRouter(tradeRouter_);
        _agents = IAgentRegistry(_router.agentRegistry());
        _allocations = IAllocationManager(_router.allocationManager());
        _positions = IPositionManager(_router.positionManager());
    }

    /// @inheritdoc ITradeRouterLens
    function isTriggerMet(uint256 positionId) external view returns (bool) {
        return exitStateOf(positionId).isDue;
    }

    /// @inheritdoc ITradeRouterLens
    function positionPnlBps(uint256 positionId) external view returns (int256) {
        IPositionManager.PositionState memory position = _positions.positionStateOf(positionId);
        if (position.tokenAmount == 0) return 0;
        (uint256 price,,, uint8 decimals) = _priceOf(position);
        return position.pnlBps(price, decimals);
    }

    /// @inheritdoc ITradeRouterLens
    function positionUnrealizedPnlUsdc(uint256 positionId) external view returns (int256) {
        return _unrealizedPnlOf(positionId);
    }

    /// @inheritdoc ITradeRouterLens
    function peakEquityUsdc(uint256 agentId) public view returns (uint256) {
        return _allocations.allocationCap(agentId) + _allocations.trackRecordOf(agentId).peakRealizedPnl;
    }

    /// @inheritdoc ITradeRouterLens
    function currentEquityUsdc(uint256 agentId) public view returns (uint256) {
        int256 equity = _allocations.allocationCap(agentId).toInt256() + _allocations.trackRecordOf(agentId).realizedPnl;
        uint256[] memory ids = _positions.getOpenPositionIds(agentId);
        for (uint256 i; i < ids.length; ++i) {
            equity += _unrealizedPnlOf(ids[i]);
        }
        return equity > 0 ? equity.toUint256() : 0;
    }

    /// @inheritdoc ITradeRouterLens
    function currentDrawdownBps(uint256 agentId) external view returns (uint256) {
        uint256 peak = peakEquityUsdc(agentId);
        uint256 current = currentEquityUsdc(agentId);
        return current < peak ? (peak - current) * PriceMath.BPS / peak : 0;
    }

    /// @inheritdoc ITradeRouterLens
    function tradeCount(uint256 agentId) external view returns (uint256) {
        return _allocations.tradeCount(agentId);
    }

    /// @inheritdoc ITradeRouterLens
    function positionsOpened(uint256 agentId) external view returns (uint256) {
        return _positions.positionsOpenedByAgent(agentId);
    }

    /// @inheritdoc ITradeRouterLens
    function positionsClosed(uint256 agentId) external view returns (uint256) {
        return _positions.positionsClosedByAgent(agentId);
    }

    /// @inheritdoc ITradeRouterLens
    function lifetimeTurnoverUsdc(uint256 agentId) external view returns (uint256) {
        return _allocations.lifetimeTurnoverUsdc(agentId);
    }

    /// @inheritdoc ITradeRouterLens
    function exitStateOf(uint256 positionId) public view returns (ExitState memory state) {
        IPositionManager.PositionState memory position = _positions.positionStateOf(positionId);
        if (position.tokenAmount == 0) return state;
        (uint256 price, uint64 updatedAt, uint80 round, uint8 decimals) = _priceOf(position);
        (address vault, uint8 track, bool isClosing) = _saleContextOf(position.agentId);
        IPositionManager.DueExit memory due = _positions.dueExitOf(positionId);
        uint256 rule = due.tokensLeft == 0 ? position.dueRule(price, updatedAt, round, decimals) : due.ruleIndex;
        state.isDue = rule != position.ladder.count();
        if (state.isDue) {
            state.tokensToSell = due.tokensLeft == 0 ? _shareOf(position, rule, price, decimals) : due.tokensLeft;
        }
        bool isRecorded = due.ruleIndex == rule || isClosing;
        if (isClosing) (state.isDue, rule, state.tokensToSell) = (true, CLOSE_ALL_RULE, position.tokenAmount);
        if (!state.isDue) return state;
        if (isRecorded && block.timestamp <= due.seenAt + DUE_EXPIRY) state.dueSince = due.since;
        state.ruleIndex = rule.toUint8();
        state.slippageBps = ITradePolicy(_router.tradePolicy())
            .exitSlippageBps(vault, track, state.dueSince == 0 ? block.timestamp : state.dueSince);
        state.floorUsdc =
            PriceMath.saleFloor(state.tokensToSell, PriceMath.minPriceOf(price, state.slippageBps), decimals);
    }

    /// @inheritdoc ITradeRouterLens
    function tradeRouter() external view returns (address) {
        return address(_router);
    }

    function _unrealizedPnlOf(uint256 positionId) private view returns (int256) {
        IPositionManager.PositionState memory position = _positions.positionStateOf(positionId);
        if (position.tokenAmount == 0) return 0;
        (uint256 price,,, uint8 decimals) = _priceOf(position);
        uint256 value = PriceMath.usdcValue(position.tokenAmount, price, decimals);
        return value.toInt256() - position.usdcCostBasis.toInt256();
    }

    function _saleContextOf(uint256 agentId) private view returns (address vault, uint8 track, bool isClosing) {
        uint256 mandate;
        (, vault, track,, mandate) = _agents.saleContextOf(agentId);
        isClosing = mandate.isClosing();
    }

    /// @dev As the router computes it: all of it when the rest would be worth nothing, or the share is nothing.
    function _shareOf(IPositionManager.PositionState memory position, uint256 rule, uint256 price, uint256 decimals)
        private
        pure
        returns (uint256 share)
    {
        share = PriceMath.shareOf(position.tokenAmount, position.ladder.exitBps(rule));
        bool isRestWorthless = PriceMath.usdcValue(position.tokenAmount - share, price, decimals) == 0;
        if (share == 0 || isRestWorthless) share = position.tokenAmount;
    }

    function _priceOf(IPositionManager.PositionState memory position)
        private
        view
        returns (uint256 price, uint64 updatedAt, uint80 round, uint8 decimals)
    {
        address oracle;
        uint256 maxAge;
        (oracle, maxAge,, decimals) = IMandateVault(_agents.vaultOf(position.agentId)).sellContextOf(position.token);
        (price, updatedAt, round) = IPriceOracle(oracle).freshPrice(position.token, maxAge);
    }
}
