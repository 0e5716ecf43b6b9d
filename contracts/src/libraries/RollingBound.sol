// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title A bound on how far a value moves within a window of time, independent of how many steps it takes
/// @notice The value is compared with two anchors: where it stood when the present half of the window began, and where
/// it stood half a window earlier. Every value must lie within the bound of both, so a series of small steps gets no
/// further within half a window than one large step.
library RollingBound {
    uint256 private constant BPS = 10_000;

    /// @dev One slot. All zero before the first value.
    struct Anchors {
        uint96 older;
        uint96 newer;
        uint40 setAt;
    }

    /// @notice Returns the anchors at `now_` for a value that stands at `current`
    function advanced(Anchors memory anchors, uint96 current, uint256 window, uint256 now_)
        internal
        pure
        returns (Anchors memory)
    {
        // A block's time fits 40 bits for another 34,000 years.
        // forge-lint: disable-start(unsafe-typecast)
        uint256 elapsed = now_ - anchors.setAt;
        if (anchors.newer == 0 || elapsed >= window) return Anchors(current, current, uint40(now_));
        if (elapsed * 2 >= window) return Anchors(anchors.newer, current, uint40(now_));
        // forge-lint: disable-end(unsafe-typecast)
        return anchors;
    }

    /// @notice Returns whether `value` is within `maxBps` of both anchors, and else the anchor that it left
    function check(Anchors memory anchors, uint256 value, uint256 maxBps)
        internal
        pure
        returns (bool isWithin, uint256 anchor)
    {
        if (isBeyond(anchors.newer, value, maxBps)) return (false, anchors.newer);
        if (isBeyond(anchors.older, value, maxBps)) return (false, anchors.older);
        return (true, anchors.newer);
    }

    /// @notice Returns whether `value` is more than `maxBps` away from `anchor`; nothing is away from zero
    function isBeyond(uint256 anchor, uint256 value, uint256 maxBps) internal pure returns (bool) {
        if (anchor == 0) return false;
        uint256 move = value > anchor ? value - anchor : anchor - value;
        return move * BPS > anchor * maxBps;
    }
}
