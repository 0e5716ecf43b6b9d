// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {TwoStepAdmin} from "../access/TwoStepAdmin.sol";
import {IAggregatorV3} from "../interfaces/IChainlinkFeed.sol";
import {IPriceOracle} from "../interfaces/IPriceOracle.sol";
import {IVerifierProxy} from "../interfaces/IVerifierProxy.sol";
import {BoundedCall} from "../libraries/BoundedCall.sol";
import {StreamReport} from "../libraries/StreamReport.sol";

/// @title Where prices come from: signed reports and push feeds, in place of the updater's key
/// @dev The verifier is trusted, as a feed is: it could attest any price, so nothing here guards against its calling back.
abstract contract PriceSources is IPriceOracle, TwoStepAdmin {
    using SafeCast for int256;

    /// @dev One slot. `session` is the stream's place among the asset's (`StreamReport.isTrading`).
    struct Stream {
        address asset;
        uint16 maxSpreadBps;
        uint8 session;
        bool isSharePrice;
    }

    uint256 internal constant BPS = 10_000;
    uint256 internal constant MAX_STREAMS = 3;

    uint256 private constant ONE = 1e18;
    uint256 private constant PRICE_DECIMALS = 8;
    uint256 private constant MAX_FEED_DECIMALS = 18;

    /// @dev What a token may have (ERC-8056), and a fee manager.
    bytes4 private constant UI_MULTIPLIER = bytes4(keccak256("uiMultiplier()"));
    bytes4 private constant NEW_UI_MULTIPLIER = bytes4(keccak256("newUIMultiplier()"));
    bytes4 private constant EFFECTIVE_AT = bytes4(keccak256("effectiveAt()"));
    bytes4 private constant ORACLE_PAUSED = bytes4(keccak256("oraclePaused()"));
    bytes4 private constant LINK_ADDRESS = bytes4(keccak256("i_linkAddress()"));

    /// @dev A push feed answers once a day, and a little later than that.
    uint256 private constant HEARTBEAT = 1 days + 1 hours;

    /// @inheritdoc IPriceOracle
    address public verifier;

    mapping(address asset => Source) private _sources;
    mapping(bytes32 feedId => Stream) private _streams;

    /// @inheritdoc IPriceOracle
    function setVerifier(address verifierProxy) external onlyRole(DEFAULT_ADMIN_ROLE) {
        // A wrong address must fail here and not at the first trade.
        IVerifierProxy(verifierProxy).s_feeManager();
        emit VerifierUpdated(verifier, verifierProxy);
        verifier = verifierProxy;
    }

    /// @inheritdoc IPriceOracle
    function setSource(address asset, Source calldata source) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (asset == address(0)) revert ZeroAddress();
        bytes32[] memory previous = _sources[asset].feedIds;
        for (uint256 i; i < previous.length; ++i) {
            delete _streams[previous[i]];
        }
        bool isReports = source.kind == SourceKind.Reports;
        bool isFeed = source.kind == SourceKind.Feed;
        bool isWhole = isReports != (source.feedIds.length == 0) && !(isFeed && source.aggregator == address(0));
        if (!isWhole || source.feedIds.length > MAX_STREAMS) revert InvalidSource(asset);
        for (uint256 i; i < source.feedIds.length; ++i) {
            _addStream(asset, source, i);
        }
        // A wrong address must fail here and not at the first price.
        if (source.aggregator != address(0)) _readAggregator(asset, source.aggregator);
        if (source.isSharePrice) _multiplierOf(asset, block.timestamp);

        _sources[asset] = source;
        emit SourceUpdated(asset, source);
        _forgetAnchors(asset);
    }

    /// @inheritdoc IPriceOracle
    function sourceOf(address asset) external view returns (Source memory) {
        return _sources[asset];
    }

    /// @inheritdoc IPriceOracle
    function assetOfStream(bytes32 feedId) external view returns (address) {
        return _streams[feedId].asset;
    }

    function _addStream(address asset, Source calldata source, uint256 index) private {
        bytes32 feedId = source.feedIds[index];
        if (StreamReport.wordsOf(feedId) == 0) revert UnknownSchema(feedId);
        if (_streams[feedId].asset != address(0)) revert StreamTaken(feedId, _streams[feedId].asset);
        // Only schema 11 has sessions, and a bid and an ask.
        if (StreamReport.schemaOf(feedId) != 11 && (index != 0 || source.maxSpreadBps != 0)) {
            revert InvalidSource(asset);
        }
        // forge-lint: disable-next-line(unsafe-typecast): there are three
        _streams[feedId] = Stream(asset, source.maxSpreadBps, uint8(index), source.isSharePrice);
    }

    function _isUpdaterSource(address asset) internal view returns (bool) {
        return _sources[asset].kind == SourceKind.Updater;
    }

    /// @dev A new oracle must not hand an asset's prices back to the updater. An older oracle may know no sources.
    function _checkSameSource(address predecessor, address asset) internal view {
        try IPriceOracle(predecessor).sourceOf(asset) returns (Source memory source) {
            if (keccak256(abi.encode(source)) != keccak256(abi.encode(_sources[asset]))) revert InvalidSource(asset);
        } catch {}
    }

    /// @dev Reverts with why a report is refused, but for its signatures.
    function _priceOf(bytes calldata report, bytes32 feedId, Stream memory stream, uint256 observedAt)
        internal
        view
        returns (uint96)
    {
        address asset = stream.asset;
        if (block.timestamp > StreamReport.expiresAt(report)) {
            revert ReportExpired(asset, StreamReport.expiresAt(report));
        }
        uint256 status = StreamReport.statusOf(report);
        if (!StreamReport.isTrading(feedId, stream.session, status)) revert MarketNotTrading(asset, status);
        int256 price = StreamReport.priceOf(report, stream.isSharePrice);
        uint96 stored = _toTokenPrice(asset, price, StreamReport.DECIMALS, stream.isSharePrice, observedAt);
        if (stream.maxSpreadBps != 0) {
            (int256 bid, int256 ask) = StreamReport.quotesOf(report);
            // One side alone, or a crossed market, is no price that two parties would trade at.
            if (bid <= 0 || ask < bid) revert InvalidPrice(asset, bid);
            uint256 spreadBps = Math.ceilDiv((ask - bid).toUint256() * BPS, price.toUint256());
            if (spreadBps > stream.maxSpreadBps) revert SpreadTooWide(asset, spreadBps, stream.maxSpreadBps);
        }
        return stored;
    }

    /// @dev The verifier must return the very report that was read: what it returns otherwise is no verification.
    function _verify(bytes calldata payload, bytes calldata report, bytes32 feedId) internal {
        address proxy = verifier;
        address feeManager = address(uint160(BoundedCall.get(proxy, IVerifierProxy.s_feeManager.selector)));
        // Prices are paid for by subscription. The fee manager wants to know in which token all the same.
        bytes memory feeToken;
        if (feeManager != address(0)) feeToken = abi.encode(BoundedCall.get(feeManager, LINK_ADDRESS));
        (bool success, bytes memory result) = proxy.call(abi.encodeCall(IVerifierProxy.verify, (payload, feeToken)));
        if (!success || !_isReturned(result, report)) revert ReportNotVerified(feedId, result);
    }

    /// @dev Whether `result` is `report` as ABI-encoded bytes. A report is whole words.
    function _isReturned(bytes memory result, bytes calldata report) private pure returns (bool isSame) {
        if (result.length != 0x40 + report.length) return false;
        assembly ("memory-safe") {
            let data := mload(0x40)
            calldatacopy(data, report.offset, report.length)
            isSame := and(eq(mload(add(result, 0x20)), 0x20), eq(mload(add(result, 0x40)), report.length))
            isSame := and(isSame, eq(keccak256(add(result, 0x60), report.length), keccak256(data, report.length)))
        }
    }

    function _streamOf(bytes32 feedId) internal view returns (Stream memory stream) {
        stream = _streams[feedId];
        if (stream.asset == address(0)) revert UnknownStream(feedId);
    }

    /// @dev The price of an asset's push feed, in the oracle's decimals and of a token.
    function _feedPriceOf(address asset) internal view returns (uint96 price, uint256 observedAt) {
        Source storage source = _sources[asset];
        if (source.kind != SourceKind.Feed) revert NotFeedSource(asset);
        if (BoundedCall.get(asset, ORACLE_PAUSED) != 0) revert FeedPaused(asset);
        int256 answer;
        uint256 decimals;
        (answer, decimals, observedAt) = _readAggregator(asset, source.aggregator);
        price = _toTokenPrice(asset, answer, decimals, source.isSharePrice, observedAt);
    }

    /// @dev What a push feed says that is not the source; 0 where there is none, or while it has nothing to say: overnight some
    /// answer zero, and while the market is closed they hold their last answer.
    function _feedOpinionOf(address asset) internal view returns (uint256) {
        Source storage source = _sources[asset];
        address aggregator = source.aggregator;
        if (aggregator == address(0) || source.kind == SourceKind.Feed) return 0;
        try this.checkedAnswerOf(asset, aggregator) returns (uint256 price) {
            return price;
        } catch {
            return 0;
        }
    }

    /// @notice Returns a push feed's answer of the last day as the price of a token; reverts where it is none
    function checkedAnswerOf(address asset, address aggregator) external view returns (uint256) {
        (int256 answer, uint256 decimals, uint256 observedAt) = _readAggregator(asset, aggregator);
        if (block.timestamp > observedAt + HEARTBEAT) revert StalePrice(asset, observedAt, HEARTBEAT);
        return _toTokenPrice(asset, answer, decimals, false, observedAt);
    }

    function _readAggregator(address asset, address aggregator)
        private
        view
        returns (int256 answer, uint256 decimals, uint256 observedAt)
    {
        decimals = IAggregatorV3(aggregator).decimals();
        if (decimals > MAX_FEED_DECIMALS) revert InvalidSource(asset);
        (, answer,, observedAt,) = IAggregatorV3(aggregator).latestRoundData();
    }

    /// @dev Rounds down.
    function _toTokenPrice(address asset, int256 price, uint256 decimals, bool isSharePrice, uint256 observedAt)
        private
        view
        returns (uint96)
    {
        if (price <= 0 || price > type(int128).max) revert InvalidPrice(asset, price);
        (uint256 multiplier, uint256 next) = isSharePrice ? _multiplierOf(asset, observedAt) : (ONE, ONE);
        uint256 scaled;
        unchecked {
            // Below 2^127 * 2^120, and 18 decimals at most.
            scaled = price.toUint256() * multiplier / (ONE * 10 ** decimals / 10 ** PRICE_DECIMALS);
        }
        if (scaled == 0 || scaled > type(uint96).max) revert InvalidPrice(asset, price);
        if (next != multiplier && _isAcrossSplit(scaled, _heldPriceOf(asset), multiplier, next)) {
            revert PriceAheadOfMultiplier(asset, price, BoundedCall.get(asset, EFFECTIVE_AT));
        }
        // forge-lint: disable-next-line(unsafe-typecast): checked above
        return uint96(scaled);
    }

    /// @dev How many shares a token stands for, with 18 decimals, if it has not changed since `observedAt`; and after a change that
    /// is announced.
    function _multiplierOf(address asset, uint256 observedAt) private view returns (uint256 multiplier, uint256 next) {
        multiplier = BoundedCall.get(asset, UI_MULTIPLIER);
        if (multiplier == 0 || multiplier > type(uint120).max) revert MultiplierUnknown(asset);
        uint256 effectiveAt = BoundedCall.get(asset, EFFECTIVE_AT);
        if (observedAt < effectiveAt && effectiveAt <= block.timestamp) {
            revert PriceBeforeMultiplier(asset, observedAt, effectiveAt);
        }
        next = effectiveAt > block.timestamp ? BoundedCall.get(asset, NEW_UI_MULTIPLIER) : multiplier;
    }

    /// @dev Whether a price is nearer, by ratio, to what a split makes of the held one than to that. Smaller steps than 5 for 4, such
    /// as dividends, are within the day's moves.
    function _isAcrossSplit(uint256 price, uint256 held, uint256 multiplier, uint256 next) private pure returns (bool) {
        (uint256 less, uint256 more) = multiplier < next ? (multiplier, next) : (next, multiplier);
        if (held == 0 || less == 0 || more > type(uint120).max || less * 5 > more * 4) return false;
        uint256 ratio = price * ONE / held;
        uint256 square = ratio * ratio / ONE;
        uint256 step = multiplier * ONE / next;
        return multiplier < next ? square < step : square > step;
    }

    /// @dev The price that is stored now; 0 before the first.
    function _heldPriceOf(address asset) internal view virtual returns (uint256);

    /// @dev Restarts the updater's deviation bound.
    function _forgetAnchors(address asset) internal virtual;
}
