// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {IMandateVault} from "../interfaces/IMandateVault.sol";
import {ITradeRouter} from "../interfaces/ITradeRouter.sol";
import {VaultShares} from "./VaultShares.sol";

/// @title The router that may move what the vault holds, and the day's notice before another one does
abstract contract RouterControl is VaultShares {
    using SafeCast for uint256;

    struct ScheduledRouter {
        address router;
        uint40 effectiveAt;
    }

    /// @notice How long a router is public before it can move what the vault holds, in seconds.
    uint256 public constant TRADE_ROUTER_DELAY = 1 days;

    /// @inheritdoc IMandateVault
    address public tradeRouter;
    ScheduledRouter private _scheduledRouter;

    modifier onlyTradeRouter() {
        _checkTradeRouter();
        _;
    }

    /// @inheritdoc IMandateVault
    function scheduleTradeRouter(address router) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (router == address(0)) revert ZeroAddress();
        uint256 effectiveAt = block.timestamp + TRADE_ROUTER_DELAY;
        _scheduledRouter = ScheduledRouter(router, effectiveAt.toUint40());
        emit TradeRouterScheduled(router, effectiveAt);
    }

    /// @inheritdoc IMandateVault
    function setTradeRouter(address router) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (router == address(0)) revert ZeroAddress();
        if (tradeRouter != address(0)) {
            ScheduledRouter memory scheduled = _scheduledRouter;
            if (router != scheduled.router) revert TradeRouterNotScheduled(router);
            if (block.timestamp < scheduled.effectiveAt) revert TradeRouterDelayed(router, scheduled.effectiveAt);
        }
        delete _scheduledRouter;
        emit TradeRouterUpdated(tradeRouter, router);
        tradeRouter = router;
    }

    /// @inheritdoc IMandateVault
    function scheduledTradeRouter() external view returns (address router, uint256 effectiveAt) {
        return (_scheduledRouter.router, _scheduledRouter.effectiveAt);
    }

    function _checkTradeRouter() private view {
        if (msg.sender != tradeRouter) revert OnlyTradeRouter(msg.sender);
    }

    /// @dev In the middle of a trade, part of what the vault holds is on its way.
    function _checkNoTrade() internal view {
        address router = tradeRouter;
        if (router.code.length != 0 && ITradeRouter(router).tradeInProgress()) revert TradeInProgress();
    }
}
