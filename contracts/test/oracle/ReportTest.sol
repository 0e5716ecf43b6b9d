// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {StockToken} from "../../src/embedded/StockToken.sol";
import {IPriceCarrier} from "../../src/interfaces/IPriceCarrier.sol";
import {IPriceOracle} from "../../src/interfaces/IPriceOracle.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {OrderTest} from "../orders/OrderTest.sol";
import {Streams} from "./Streams.sol";

/// @notice The protocol with tokens whose prices are signed reports, which trades bring along
abstract contract ReportTest is OrderTest {
    bytes32 internal constant NVDA_STREAM = bytes32(uint256(11) << 240 | 1);
    bytes32 internal constant TSLA_STREAM = bytes32(uint256(11) << 240 | 2);
    uint256 internal constant REGULAR_HOURS = 2;

    Streams internal streams;

    function setUp() public virtual override {
        super.setUp();
        _useReports(1);
    }

    /// @dev Both tokens' prices are reports from now on, signed by f + 1 of 3 f + 1 signers.
    function _useReports(uint8 f) internal {
        streams = new Streams(f);
        vm.startPrank(admin);
        oracle.setVerifier(address(streams.proxy()));
        oracle.setSource(address(nvda), _reportsOf(NVDA_STREAM, false));
        oracle.setSource(address(tsla), _reportsOf(TSLA_STREAM, false));
        vm.stopPrank();
    }

    function _reportsOf(bytes32 feedId, bool isSharePrice) internal pure returns (IPriceOracle.Source memory source) {
        source.kind = IPriceOracle.SourceKind.Reports;
        source.feedIds = new bytes32[](1);
        source.feedIds[0] = feedId;
        source.maxSpreadBps = 50;
        source.isSharePrice = isSharePrice;
    }

    /// @param price With 8 decimals
    function _report(StockToken token, uint256 price) internal view returns (bytes memory) {
        return streams.signed(token == nvda ? NVDA_STREAM : TSLA_STREAM, int192(int256(price * 1e10)), REGULAR_HOURS);
    }

    function _carry(address target, address sender, bytes memory report, bytes memory call)
        internal
        returns (bytes memory)
    {
        bytes[] memory reports = new bytes[](1);
        reports[0] = report;
        vm.prank(sender);
        return IPriceCarrier(target).withPrices(reports, new address[](0), address(oracle), call);
    }

    function _carryOpen(StockToken token, uint256 amount, bytes memory report) internal returns (uint256) {
        bytes memory call = _openCall(token, amount);
        return abi.decode(_carry(address(router), executor, report, call), (uint256));
    }

    function _openCall(StockToken token, uint256 amount) internal view returns (bytes memory) {
        ITradeRouter.PositionIntent memory intent = _openIntent(token, amount);
        return abi.encodeCall(router.openPosition, (intent, _sign(signerKey, digests.hashOpenPosition(intent))));
    }

    function _reduceCall(uint256 positionId, uint16 exitBps) internal view returns (bytes memory) {
        ITradeRouter.ReducePositionIntent memory intent = _reduceIntent(positionId, exitBps);
        return abi.encodeCall(router.reducePosition, (intent, _sign(signerKey, digests.hashReducePosition(intent))));
    }

    /// @dev What a stranger does to bring a price without a trade.
    function _postReport(bytes memory report) internal {
        bytes[] memory reports = new bytes[](1);
        reports[0] = report;
        oracle.postReports(reports);
    }
}
