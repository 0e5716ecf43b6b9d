// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IMandateVault} from "../interfaces/IMandateVault.sol";
import {ITradeRouter} from "../interfaces/ITradeRouter.sol";
import {VaultShares} from "./VaultShares.sol";

/// @title The router that may move what the vault holds
/// @dev The admin replaces it at once: what announces a change is the delay of the timelock, for everything that can move a
/// vault's funds alike.
abstract contract RouterControl is VaultShares {
    /// @inheritdoc IMandateVault
    address public tradeRouter;

    /// @dev USDC that deposits, redemptions and trades have brought, in the slot that every trade reads. Donations do not count.
    uint96 internal _idle;

    modifier onlyTradeRouter() {
        _checkTradeRouter();
        _;
    }

    /// @inheritdoc IMandateVault
    function setTradeRouter(address router) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (router == address(0)) revert ZeroAddress();
        emit TradeRouterUpdated(tradeRouter, router);
        tradeRouter = router;
    }

    /// @inheritdoc IMandateVault
    function idleAssets() public view returns (uint256) {
        return _idle;
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
