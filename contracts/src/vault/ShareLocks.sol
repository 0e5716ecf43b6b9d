// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {IMandateVault} from "../interfaces/IMandateVault.sol";
import {ITradeRouter} from "../interfaces/ITradeRouter.sol";
import {RouterControl} from "./RouterControl.sol";

/// @title Shares that neither redeem nor move: new ones for a holding time, and those that answer for an agent's losses
abstract contract ShareLocks is RouterControl {
    using SafeCast for uint256;

    /// @dev Shares that came in until `closesAt` and are locked until `unlocksAt`.
    struct Tranche {
        uint128 shares;
        uint40 closesAt;
        uint40 unlocksAt;
    }

    /// @dev An account has at most one lock more than this at a time.
    uint256 private constant TRANCHES_PER_HOLDING_TIME = 8;

    mapping(address owner => Tranche[]) private _tranches;

    /// @inheritdoc IMandateVault
    mapping(address owner => uint256) public firstLossShares;

    /// @dev The allocation manager of the router that may move what the vault holds.
    modifier onlyAllocationManager() {
        if (msg.sender != ITradeRouter(tradeRouter).allocationManager()) revert OnlyAllocationManager(msg.sender);
        _;
    }

    /// @inheritdoc IMandateVault
    function lockFirstLoss(address owner, uint256 shares) external onlyAllocationManager {
        uint256 locked = firstLossShares[owner] + shares;
        if (locked > balanceOf(owner)) {
            revert InsufficientShares(owner, balanceOf(owner) - firstLossShares[owner], shares);
        }
        firstLossShares[owner] = locked;
    }

    /// @inheritdoc IMandateVault
    function unlockFirstLoss(address owner, uint256 shares) external onlyAllocationManager {
        if (shares == 0) return;
        firstLossShares[owner] -= shares;
        _lock(owner, shares);
    }

    /// @inheritdoc IMandateVault
    function lockedShares(address owner) public view returns (uint256 shares) {
        Tranche[] storage tranches = _tranches[owner];
        for (uint256 i = tranches.length; i != 0 && tranches[i - 1].unlocksAt > block.timestamp; --i) {
            shares += tranches[i - 1].shares;
        }
    }

    function _lock(address owner, uint256 shares) internal {
        uint256 holdingTime = _liquidityPolicy.holdingTime;
        if (holdingTime == 0) return;

        Tranche[] storage tranches = _tranches[owner];
        uint256 count = tranches.length;
        Tranche memory last;
        if (count != 0) last = tranches[count - 1];
        uint256 unlocksAt = last.unlocksAt;
        // A lock is never extended, so nobody can keep another's shares locked by depositing dust for them.
        if (block.timestamp < last.closesAt && unlocksAt >= block.timestamp + holdingTime) {
            tranches[count - 1].shares = last.shares + shares.toUint128();
        } else {
            uint256 closesAt = block.timestamp + holdingTime / TRANCHES_PER_HOLDING_TIME;
            // No later lock ends before an earlier one: `lockedShares` looks no further than the first that has ended.
            unlocksAt = Math.max(closesAt + holdingTime, unlocksAt);
            tranches.push(Tranche(shares.toUint128(), closesAt.toUint40(), unlocksAt.toUint40()));
        }
        emit SharesLockedUntil(owner, shares, unlocksAt);
    }

    /// @dev A transfer would be a way around the lock, so shares within their holding time do not move either.
    function _checkUnlocked(address owner, uint256 shares) internal view {
        uint256 available = _availableShares(owner);
        if (shares > available && shares <= balanceOf(owner)) revert SharesLocked(owner, available, shares);
    }

    /// @dev One share may be within its holding time and answer for losses at once.
    function _availableShares(address owner) internal view returns (uint256) {
        return Math.saturatingSub(balanceOf(owner), Math.max(lockedShares(owner), firstLossShares[owner]));
    }
}
