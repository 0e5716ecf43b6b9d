// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Test} from "forge-std/Test.sol";
import {RollingBound} from "../src/libraries/RollingBound.sol";

/// @notice The rolling bound, for every 96-bit value, window below 2^32 seconds and 40-bit time
contract RollingBoundProofs is Test {
    using RollingBound for RollingBound.Anchors;

    /// @dev So however many values are accepted within half a window, the next one is compared with the same two anchors.
    function check_NoAnchorMovesWithinHalfAWindow(
        RollingBound.Anchors memory anchors,
        uint96 current,
        uint32 window,
        uint40 now_
    ) public pure {
        vm.assume(anchors.newer != 0 && now_ >= anchors.setAt);
        vm.assume(uint256(now_ - anchors.setAt) * 2 < window);
        RollingBound.Anchors memory moved = anchors.advanced(current, window, now_);
        assert(moved.older == anchors.older && moved.newer == anchors.newer && moved.setAt == anchors.setAt);
    }

    /// @dev So a value that stood within the last window is always an anchor, or within the bound of one.
    function check_AnAnchorIsForgottenOnlyAfterHalfAWindow(
        RollingBound.Anchors memory anchors,
        uint96 current,
        uint32 window,
        uint40 now_
    ) public pure {
        vm.assume(anchors.newer != 0 && now_ >= anchors.setAt && window != 0);
        uint256 elapsed = now_ - anchors.setAt;
        RollingBound.Anchors memory moved = anchors.advanced(current, window, now_);
        if (elapsed < window) assert(moved.older == anchors.newer || moved.newer == anchors.newer);
        if (moved.setAt != anchors.setAt) {
            assert(moved.newer == current && moved.setAt == now_ && elapsed * 2 >= window);
        }
    }
}
