// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title What trading needs of an agent's mandate, in the free bits of a slot that every trade reads
/// @notice Bits 0..7 hold the `MandateMode`, bits 8..47 until when the mandate lets the agent buy (0 for no end), bits
/// 48..87 since when the agent is being closed (0 while it is not), bit 88 whether the mandate has limits that
/// `OwnerControls` checks. All zero for an agent without a mandate.
library MandateState {
    /// @notice The largest time that fits
    uint256 internal constant MAX_TIME = type(uint40).max;

    uint256 private constant ONE = 1;
    uint256 private constant VALID_AT = 8;
    uint256 private constant CLOSING_AT = 48;
    uint256 private constant LIMITS_AT = 88;

    /// @dev Both times fit in 40 bits.
    function pack(uint256 mode_, uint256 validUntil_, uint256 closingSince_, bool hasLimits_)
        internal
        pure
        returns (uint256 state)
    {
        state = mode_ | validUntil_ << VALID_AT | closingSince_ << CLOSING_AT;
        if (hasLimits_) state |= ONE << LIMITS_AT;
    }

    function mode(uint256 state) internal pure returns (uint256) {
        return state & 0xff;
    }

    function validUntil(uint256 state) internal pure returns (uint256) {
        return (state >> VALID_AT) & MAX_TIME;
    }

    function closingSince(uint256 state) internal pure returns (uint256) {
        return (state >> CLOSING_AT) & MAX_TIME;
    }

    function hasLimits(uint256 state) internal pure returns (bool) {
        return state >> LIMITS_AT != 0;
    }

    /// @notice Returns whether the owner has stopped the agent's buying, however it ends
    function isStopped(uint256 state) internal pure returns (bool) {
        return state & (0xff | MAX_TIME << CLOSING_AT) != 0;
    }

    function isClosing(uint256 state) internal pure returns (bool) {
        return state & (MAX_TIME << CLOSING_AT) != 0;
    }

    /// @notice Returns whether the agent may buy at `time`, limits aside
    function isBuyingAllowed(uint256 state, uint256 time) internal pure returns (bool) {
        uint256 end = validUntil(state);
        return mode(state) == 0 && (end == 0 || time <= end);
    }
}
