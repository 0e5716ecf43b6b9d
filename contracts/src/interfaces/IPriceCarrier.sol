// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title A contract whose calls may bring the prices that they need
interface IPriceCarrier {
    /// @notice Stores prices in an oracle, then makes `call` to this contract itself, as the same sender. What is signed names no
    /// report: whoever relays it brings the newest one.
    /// @param reports Signed reports (`IPriceOracle.postReports`)
    /// @param feeds Assets whose push feed is to be read (`IPriceOracle.syncFeeds`)
    /// @param oracle The oracle that the prices are for; the call reads those of the vault's own
    /// @return What `call` returned; its errors, and those of the oracle, are passed on
    function withPrices(bytes[] calldata reports, address[] calldata feeds, address oracle, bytes calldata call)
        external
        returns (bytes memory);
}
