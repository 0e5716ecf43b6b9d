// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {IAgentRegistry} from "./interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "./interfaces/IAllocationManager.sol";
import {IMandateVault} from "./interfaces/IMandateVault.sol";
import {IPositionManager} from "./interfaces/IPositionManager.sol";
import {IPriceOracle} from "./interfaces/IPriceOracle.sol";
import {ITradeRouter} from "./interfaces/ITradeRouter.sol";
import {ITradeRouterLens} from "./interfaces/ITradeRouterLens.sol";
import {ExitLadder} from "./libraries/ExitLadder.sol";
import {ExitTrigger} from "./libraries/ExitTrigger.sol";
import {PriceMath} from "./libraries/PriceMath.sol";

/// @title Reads over one trade router; holds nothing
/// @dev What the functions do is said in `ITradeRouterLens`.
contract TradeRouterLens is ITradeRouterLens {
    using ExitLadder for uint256;
    using ExitTrigger for IPositionManager.PositionState;
    using SafeCast for uint256;
    using SafeCast for int256;

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
        IPositionManager.PositionState memory position = _positions.positionStateOf(positionId);
        if (position.tokenAmount == 0) return false;
        (uint256 price, uint64 updatedAt, uint80 round,) = _priceOf(position);
        return position.dueRule(price, updatedAt, round) != position.ladder.count();
    }

    /// @inheritdoc ITradeRouterLens
    function positionPnlBps(uint256 positionId) external view returns (int256) {
        IPositionManager.PositionState memory position = _positions.positionStateOf(positionId);
        if (position.tokenAmount == 0) return 0;
        (uint256 price,,,) = _priceOf(position);
        return PriceMath.pnlBps(price, position.entryPriceUsdc);
    }

    /// @inheritdoc ITradeRouterLens
    function positionUnrealizedPnlUsdc(uint256 positionId) external view returns (int256) {
        return _unrealizedPnlOf(positionId);
    }

    /// @inheritdoc ITradeRouterLens
    function peakEquityUsdc(uint256 agentId) public view returns (uint256) {
        return _allocations.allocationCap(agentId) + _router.peakRealizedPnlUsdc(agentId);
    }

    /// @inheritdoc ITradeRouterLens
    function currentEquityUsdc(uint256 agentId) public view returns (uint256) {
        int256 equity = _allocations.allocationCap(agentId).toInt256() + _router.lifetimeRealizedPnlUsdc(agentId);
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
        return _router.tradeCount(agentId);
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
        return _router.lifetimeTurnoverUsdc(agentId);
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
