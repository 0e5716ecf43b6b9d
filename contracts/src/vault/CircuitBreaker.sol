// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {IMandateVault} from "../interfaces/IMandateVault.sol";
import {RollingBound} from "../libraries/RollingBound.sol";
import {TokenTrading} from "./TokenTrading.sol";

/// @title The circuit breaker: shares are neither made nor redeemed while their price is uncertain by more than one bound
/// @notice Deposits pay the higher, and redemptions get the lower, of what the oracle and the pools say the vault is worth. The
/// breaker stops both while these two differ by more than the bound, and after a jump of the share price until that has
/// held for the cooldown.
abstract contract CircuitBreaker is TokenTrading {
    using RollingBound for RollingBound.Anchors;
    using SafeCast for uint256;

    /// @dev A share price beyond the bound, and when it was first seen.
    struct Jump {
        uint96 price;
        uint40 seenAt;
    }

    /// @dev How long after its cooldown a jump is accepted. An old record would let a later jump in at once.
    uint256 private constant JUMP_EXPIRY = 1 hours;

    /// @dev A hundred whole shares. Fewer have no price worth guarding: pennies would move it, and keep an all but empty
    /// vault closed to everybody.
    uint256 private constant MIN_SUPPLY = 100e12;

    RollingBound.Anchors private _anchors;
    Jump private _jump;

    /// @inheritdoc IMandateVault
    function setLiquidityPolicy(LiquidityPolicy calldata policy) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if ((policy.maxMoveBps == 0) != (policy.moveWindow == 0)) revert InvalidLiquidityPolicy(policy);
        _liquidityPolicy = policy;
        emit LiquidityPolicyUpdated(policy);
        // The breaker counts from now on: without anchors the first price would pass whatever it is.
        delete _anchors;
        _anchorSharePrice();
    }

    /// @inheritdoc IMandateVault
    function checkpointSharePrice() external {
        _checkNoTrade();
        LiquidityPolicy memory policy = _liquidityPolicy;
        (bool jumped, uint256 anchor, uint96 price) = _checkAnchors();
        if (!jumped) {
            delete _jump;
            _anchorSharePrice();
            return;
        }

        Jump memory jump = _jump;
        uint256 acceptedAt = uint256(jump.seenAt) + policy.moveCooldown;
        bool isOver = jump.price == 0 || block.timestamp > acceptedAt + JUMP_EXPIRY;
        if (isOver || RollingBound.isBeyond(jump.price, price, policy.maxMoveBps)) {
            _jump = Jump(price, block.timestamp.toUint40());
            emit SharePriceJumpSeen(anchor, price, block.timestamp + policy.moveCooldown);
        } else if (block.timestamp >= acceptedAt) {
            delete _jump;
            _anchors = RollingBound.Anchors(price, price, block.timestamp.toUint40());
            emit SharePriceJumpAccepted(price);
        }
    }

    /// @inheritdoc IMandateVault
    function sharePriceBreaker() external view returns (SharePriceBreaker memory) {
        RollingBound.Anchors memory anchors = _anchors;
        (bool isOpen,,) = _checkSharePrice();
        uint256 acceptedAt = _jump.price == 0 ? 0 : uint256(_jump.seenAt) + _liquidityPolicy.moveCooldown;
        return SharePriceBreaker(anchors.older, anchors.newer, anchors.setAt, _jump.price, acceptedAt, isOpen);
    }

    /// @dev Moves the anchors of the breaker on, as far as the time that has passed allows.
    function _anchorSharePrice() internal {
        uint256 window = _liquidityPolicy.moveWindow;
        RollingBound.Anchors memory held = _anchors;
        if (window == 0 || totalSupply() < MIN_SUPPLY) {
            if (held.newer != 0) delete _anchors;
            return;
        }
        RollingBound.Anchors memory anchors = held.advanced(_sharePrice(), window, block.timestamp);
        if (anchors.setAt != held.setAt) _anchors = anchors;
    }

    /// @dev For a share price within its bound: a jump seen earlier did not hold.
    function _forgetJump() internal {
        if (_jump.price != 0) delete _jump;
    }

    /// @dev Whether the breaker is open, and the two share prices that are too far apart: an anchor and the present price, or the
    /// two between which the present price is.
    function _checkSharePrice() internal view returns (bool jumped, uint256 anchor, uint256 price) {
        (jumped, anchor, price) = _checkAnchors();
        uint256 maxMoveBps = _liquidityPolicy.maxMoveBps;
        if (jumped || maxMoveBps == 0 || totalSupply() < MIN_SUPPLY) return (jumped, anchor, price);
        (uint256 low, uint256 high) = totalAssetsRange();
        if (!RollingBound.isBeyond(high, low, maxMoveBps)) return (false, anchor, price);
        uint256 share = 10 ** decimals();
        return (true, _assetsFor(share, high, Math.Rounding.Floor), _assetsFor(share, low, Math.Rounding.Floor));
    }

    /// @dev Whether the share price at the oracle's last prices has left the bound, which anchor it left, and where it stands.
    function _checkAnchors() private view returns (bool jumped, uint256 anchor, uint96 price) {
        price = _sharePrice();
        uint256 maxMoveBps = _liquidityPolicy.maxMoveBps;
        if (maxMoveBps == 0 || totalSupply() < MIN_SUPPLY) return (false, price, price);
        bool isWithin;
        (isWithin, anchor) = _anchors.check(price, maxMoveBps);
        jumped = !isWithin;
    }

    /// @dev USDC base units per whole share.
    function _sharePrice() private view returns (uint96) {
        return Math.min(convertToAssets(10 ** decimals()), type(uint96).max).toUint96();
    }
}
