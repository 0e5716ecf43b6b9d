// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IPriceOracle} from "../interfaces/IPriceOracle.sol";

/// @title Reports of Chainlink Data Streams: docs.chain.link/data-streams/reference
/// @dev Every field is a word of its own. A report begins with feedId, validFrom, observationsTimestamp, nativeFee, linkFee and
/// expiresAt; the rest depends on the schema, the first two bytes of the feed's id.
library StreamReport {
    uint256 internal constant DECIMALS = 18;

    uint256 private constant NANOSECONDS = 1e9;

    /// @notice Returns the report inside the envelope that a verifier takes: context (3 words), report, signatures
    function reportIn(bytes calldata payload) internal pure returns (bytes calldata report) {
        if (payload.length < 0xe0) revert IPriceOracle.MalformedReport();
        unchecked {
            uint256 rest = payload.length - 0x20;
            uint256 at = _word(payload, 3);
            if (at > rest) revert IPriceOracle.MalformedReport();
            assembly ("memory-safe") {
                report.offset := add(add(payload.offset, at), 0x20)
                report.length := calldataload(sub(report.offset, 0x20))
            }
            if (report.length < 0x20 || report.length > rest - at) revert IPriceOracle.MalformedReport();
            uint256 words = wordsOf(feedIdOf(report));
            if (words != 0 && report.length != words * 0x20) revert IPriceOracle.MalformedReport();
        }
    }

    function feedIdOf(bytes calldata report) internal pure returns (bytes32) {
        return bytes32(_word(report, 0));
    }

    /// @notice Returns the length of a feed's reports in words; 0 for an unknown schema
    function wordsOf(bytes32 feedId) internal pure returns (uint256) {
        uint256 schema = schemaOf(feedId);
        if (schema == 8) return 9;
        if (schema == 10) return 13;
        return schema == 11 ? 14 : 0;
    }

    function schemaOf(bytes32 feedId) internal pure returns (uint256) {
        return uint256(feedId) >> 240;
    }

    /// @notice Returns when the price was seen: a halt shows in nothing but a price that no longer changes
    function observedAt(bytes calldata report) internal pure returns (uint256) {
        uint256 observed = _word(report, 2);
        uint256 seen = _word(report, schemaOf(feedIdOf(report)) == 11 ? 7 : 6) / NANOSECONDS;
        return seen < observed ? seen : observed;
    }

    function expiresAt(bytes calldata report) internal pure returns (uint256) {
        return _word(report, 5);
    }

    /// @notice Returns the price of a share, or that of a token, which only schema 10 has apart from it
    function priceOf(bytes calldata report, bool isSharePrice) internal pure returns (int256) {
        uint256 schema = schemaOf(feedIdOf(report));
        if (schema == 11) return int256(_word(report, 6));
        return int256(_word(report, schema == 10 && !isSharePrice ? 12 : 7));
    }

    /// @notice Returns bid and ask, which only schema 11 has
    function quotesOf(bytes calldata report) internal pure returns (int256 bid, int256 ask) {
        return (int256(_word(report, 8)), int256(_word(report, 10)));
    }

    function statusOf(bytes calldata report) internal pure returns (uint256) {
        return _word(report, schemaOf(feedIdOf(report)) == 11 ? 13 : 8);
    }

    /// @notice Returns whether a feed's price is one of the market's present session
    /// @dev Status 1 is a closed market in schemas 8 and 10, and pre-market in the feeds of 24/5 that have schema 11.
    /// @param session Which of an asset's feeds it is: 0 regular hours, 1 extended hours, 2 overnight
    function isTrading(bytes32 feedId, uint256 session, uint256 status) internal pure returns (bool) {
        if (session == 0) return status == 2;
        if (schemaOf(feedId) != 11) return false;
        return session == 1 ? status == 1 || status == 3 : status == 4;
    }

    /// @dev Of bytes that are long enough.
    function _word(bytes calldata data, uint256 index) private pure returns (uint256 word) {
        assembly ("memory-safe") {
            word := calldataload(add(data.offset, shl(5, index)))
        }
    }
}
