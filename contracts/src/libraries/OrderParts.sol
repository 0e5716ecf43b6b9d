// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {PriceMath} from "./PriceMath.sol";

/// @title How an order is divided into equal parts, which count from 1
library OrderParts {
    /// @notice Returns what a part of a purchase spends: the last one has what division leaves over
    function usdcOf(uint256 usdcAmount, uint256 parts, uint256 part) internal pure returns (uint256) {
        uint256 each = usdcAmount / parts;
        return part == parts ? usdcAmount - each * (part - 1) : each;
    }

    /// @notice Returns the share, in bps, that a part of a reduction sells of what the parts before it have left
    /// @dev It brings the sum of all parts to the order's share so far: rounding each part alone would sell half of 75 bps in 38
    /// parts.
    function shareOf(uint256 exitBps, uint256 parts, uint256 part) internal pure returns (uint256) {
        if (parts == 1) return exitBps;
        uint256 sold = exitBps * (part - 1) / parts;
        uint256 left = PriceMath.BPS - sold;
        return ((exitBps * part / parts - sold) * PriceMath.BPS + left / 2) / left;
    }
}
