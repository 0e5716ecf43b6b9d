// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {IMandateVault} from "../interfaces/IMandateVault.sol";
import {VaultShares} from "./VaultShares.sol";

/// @title The holding time: new shares neither redeem nor move before it is over
abstract contract ShareLocks is VaultShares {
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
        uint256 unlocksAt;
        // A lock is never extended, so nobody can keep another's shares locked by depositing dust for them.
        if (count != 0 && block.timestamp < tranches[count - 1].closesAt) {
            tranches[count - 1].shares += shares.toUint128();
            unlocksAt = tranches[count - 1].unlocksAt;
        } else {
            uint256 closesAt = block.timestamp + holdingTime / TRANCHES_PER_HOLDING_TIME;
            unlocksAt = closesAt + holdingTime;
            tranches.push(Tranche(shares.toUint128(), closesAt.toUint40(), unlocksAt.toUint40()));
        }
        emit SharesLockedUntil(owner, shares, unlocksAt);
    }

    /// @dev A transfer would be a way around the lock, so shares within their holding time do not move either.
    function _checkUnlocked(address owner, uint256 shares) internal view {
        uint256 available = _availableShares(owner);
        if (shares > available && shares <= balanceOf(owner)) revert SharesLocked(owner, available, shares);
    }

    function _availableShares(address owner) internal view returns (uint256) {
        return balanceOf(owner) - lockedShares(owner);
    }
}
