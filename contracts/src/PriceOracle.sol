// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {SlotDerivation} from "@openzeppelin/contracts/utils/SlotDerivation.sol";
import {TransientSlot} from "@openzeppelin/contracts/utils/TransientSlot.sol";
import {TwoStepAdmin} from "./access/TwoStepAdmin.sol";
import {IPriceOracle} from "./interfaces/IPriceOracle.sol";
import {IBlockUptimeFeed, ISequencerUptimeFeed} from "./interfaces/IChainlinkFeed.sol";
import {ISwapAdapter} from "./interfaces/ISwapAdapter.sol";
import {RollingBound} from "./libraries/RollingBound.sol";
import {StreamReport} from "./libraries/StreamReport.sol";
import {PriceSources} from "./oracle/PriceSources.sol";

/// @title USD prices with 8 decimals, many assets in one contract
/// @notice Each asset has one source: signed reports, a push feed, or the updater's key, which has no power over the others.
/// @notice A move beyond an asset's bound is refused to the updater and goes through `forcePrice` of another role. A second
/// confirmation by the updater would add nothing: the same key signs both and the same provider feeds both, so a stolen
/// key or a broken feed confirms itself. What makes a price jump for good (a split, a halt, a weekend's news) needs
/// somebody who looked elsewhere.
/// @dev The bound counts per time and not per update (`RollingBound`): a stolen updater key that walks the price in many
/// steps gets no further within half a window than with one. The second opinion of a pool blocks no update, because a
/// pool follows the news later than the provider does and exits must not wait for it; shares are priced with both
/// (`priceRangeOf`), while trades are compared with the pool by the router's policy.
contract PriceOracle is PriceSources {
    using RollingBound for RollingBound.Anchors;
    using SlotDerivation for bytes32;
    using TransientSlot for bytes32;
    using TransientSlot for TransientSlot.Uint256Slot;

    /// @dev A price and its limits, in one slot.
    struct Feed {
        uint96 price;
        uint40 observedAt;
        uint32 roundId;
        uint32 maxAge;
        uint32 maxDeviationBps;
        uint24 deviationWindow;
    }

    struct SequencerCheck {
        address feed;
        uint64 gracePeriod;
        bool isObserved;
    }

    bytes32 public constant ORACLE_UPDATER_ROLE = keccak256("ORACLE_UPDATER_ROLE");
    bytes32 public constant ORACLE_FORCER_ROLE = keccak256("ORACLE_FORCER_ROLE");

    /// @notice How far ahead of the chain's clock an observation may be, in seconds; it is then held as observed now.
    uint256 public constant MAX_FUTURE_SECONDS = 5;

    /// @notice The longest wait after the sequencer comes back, in seconds.
    uint256 public constant MAX_GRACE_PERIOD = 1 days;

    uint8 private constant DECIMALS = 8;

    /// @dev Transient: the number of the batch under way in this transaction, and per asset the batch that moved it last.
    bytes32 private constant BATCH_SLOT = keccak256("PriceOracle.batch");
    bytes32 private constant BATCH_OF_ASSET_SLOT = keccak256("PriceOracle.batchOfAsset");

    mapping(address asset => Feed) private _feeds;

    /// @dev Where the deviation bound counts from. Written only for assets with a bound.
    mapping(address asset => RollingBound.Anchors) private _anchors;
    mapping(address asset => SecondOpinion) private _opinions;
    SequencerCheck private _sequencer;

    /// @param admin Receives DEFAULT_ADMIN_ROLE
    constructor(address admin) TwoStepAdmin(admin) {
        if (admin == address(0)) revert ZeroAddress();
    }

    /// @inheritdoc IPriceOracle
    function setPrice(address asset, int256 price) external onlyRole(ORACLE_UPDATER_ROLE) {
        _set(asset, price);
    }

    /// @inheritdoc IPriceOracle
    function setPrices(address[] calldata assets, int256[] calldata prices) external onlyRole(ORACLE_UPDATER_ROLE) {
        _startBatch(assets.length, prices.length);
        for (uint256 i = 0; i < assets.length; ++i) {
            if (_isInBatch(assets[i])) revert DuplicateAsset(assets[i]);
            _set(assets[i], prices[i]);
            _addToBatch(assets[i]);
        }
    }

    /// @inheritdoc IPriceOracle
    function post(address[] calldata assets, int256[] calldata prices, uint64[] calldata observedAt)
        external
        onlyRole(ORACLE_UPDATER_ROLE)
    {
        _observeChain();
        _startBatch(assets.length, prices.length);
        if (assets.length != observedAt.length) revert LengthMismatch(assets.length, observedAt.length);
        for (uint256 i = 0; i < assets.length; ++i) {
            _post(assets[i], prices[i], observedAt[i]);
        }
    }

    /// @inheritdoc IPriceOracle
    function forcePrice(address asset, int256 price) external onlyRole(ORACLE_FORCER_ROLE) {
        _force(asset, price);
    }

    /// @inheritdoc IPriceOracle
    function postReports(bytes[] calldata payloads) public {
        _observeChain();
        for (uint256 i; i < payloads.length; ++i) {
            _postReport(payloads[i]);
        }
    }

    /// @inheritdoc IPriceOracle
    function syncFeeds(address[] calldata assets) public {
        _observeChain();
        for (uint256 i; i < assets.length; ++i) {
            _syncFeed(assets[i]);
        }
    }

    /// @inheritdoc IPriceOracle
    function postPrices(bytes[] calldata payloads, address[] calldata assets) external {
        postReports(payloads);
        if (assets.length != 0) syncFeeds(assets);
    }

    /// @inheritdoc IPriceOracle
    function setAssetConfig(address asset, AssetConfig calldata config) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (asset == address(0)) revert ZeroAddress();
        if ((config.maxDeviationBps == 0) != (config.deviationWindow == 0)) {
            revert InvalidDeviationBound(asset, config.maxDeviationBps, config.deviationWindow);
        }
        Feed storage feed = _feeds[asset];
        feed.maxAge = config.maxAge;
        feed.maxDeviationBps = config.maxDeviationBps;
        feed.deviationWindow = config.deviationWindow;
        delete _anchors[asset];
        emit AssetConfigUpdated(asset, config.maxAge, config.maxDeviationBps, config.deviationWindow);
    }

    /// @inheritdoc IPriceOracle
    function setSecondOpinion(address asset, SecondOpinion calldata opinion) external onlyRole(DEFAULT_ADMIN_ROLE) {
        // A wrong address must fail here and not at the first withdrawal.
        if (opinion.source != address(0)) ISwapAdapter(opinion.source).pricesOf(asset, opinion.twapWindow);
        _opinions[asset] = opinion;
        emit SecondOpinionUpdated(asset, opinion.source, opinion.twapWindow);
    }

    /// @inheritdoc IPriceOracle
    function inheritFrom(address predecessor, address[] calldata assets) external onlyRole(DEFAULT_ADMIN_ROLE) {
        for (uint256 i = 0; i < assets.length; ++i) {
            _checkSameSource(predecessor, assets[i]);
            (uint256 price, uint64 observedAt, uint80 roundId) = IPriceOracle(predecessor).peekPrice(assets[i]);
            Feed memory feed = _feeds[assets[i]];
            if (observedAt > feed.observedAt) {
                feed.price = SafeCast.toUint96(price);
                feed.observedAt = SafeCast.toUint40(observedAt);
            }
            feed.roundId = SafeCast.toUint32(Math.max(feed.roundId, roundId));
            _feeds[assets[i]] = feed;
            emit PriceInherited(assets[i], int256(uint256(feed.price)), feed.observedAt, feed.roundId, predecessor);
        }
    }

    /// @inheritdoc IPriceOracle
    function setSequencerFeed(address feed, uint256 gracePeriod) external onlyRole(DEFAULT_ADMIN_ROLE) {
        if (gracePeriod > MAX_GRACE_PERIOD) revert GracePeriodTooLong(gracePeriod, MAX_GRACE_PERIOD);
        // A wrong address must fail here and not at the first trade.
        if (feed != address(0)) ISequencerUptimeFeed(feed).latestRoundData();
        (bool isObserved,) = feed.call(abi.encodeCall(IBlockUptimeFeed.observe, ()));
        _sequencer = SequencerCheck({
            feed: feed, gracePeriod: SafeCast.toUint64(gracePeriod), isObserved: isObserved && feed != address(0)
        });
        emit SequencerFeedUpdated(feed, gracePeriod);
    }

    /// @inheritdoc IPriceOracle
    function latestRoundData(address asset)
        external
        view
        returns (uint80 roundId, int256 answer, uint256 startedAt, uint256 updatedAt, uint80 answeredInRound)
    {
        Feed memory feed = _quoted(asset);
        return (feed.roundId, int256(uint256(feed.price)), feed.observedAt, feed.observedAt, feed.roundId);
    }

    /// @inheritdoc IPriceOracle
    function decimals(address) external pure returns (uint8) {
        return DECIMALS;
    }

    /// @inheritdoc IPriceOracle
    function freshPrice(address asset, uint256 maxAge)
        external
        view
        returns (uint256 price, uint64 updatedAt, uint80 roundId)
    {
        Feed memory feed = _quoted(asset);
        (bool isUp, uint256 graceEnd) = _sequencerState();
        if (!isUp) revert SequencerDown();
        if (block.timestamp < graceEnd) revert SequencerGracePeriod(graceEnd);
        uint256 window = _window(feed.maxAge, maxAge);
        if (_isOlder(feed.observedAt, window)) revert StalePrice(asset, feed.observedAt, window);
        return (feed.price, feed.observedAt, feed.roundId);
    }

    /// @inheritdoc IPriceOracle
    function peekPrice(address asset) external view returns (uint256 price, uint64 updatedAt, uint80 roundId) {
        Feed memory feed = _feeds[asset];
        return (feed.price, feed.observedAt, feed.roundId);
    }

    /// @inheritdoc IPriceOracle
    function isStale(address asset, uint256 maxAge) public view returns (bool) {
        Feed memory feed = _feeds[asset];
        (bool isUp, uint256 graceEnd) = _sequencerState();
        return feed.roundId == 0 || !isUp || block.timestamp < graceEnd
            || _isOlder(feed.observedAt, _window(feed.maxAge, maxAge));
    }

    /// @inheritdoc IPriceOracle
    function priceRangeOf(address asset, uint256 maxAge) external view returns (uint256 low, uint256 high) {
        high = _feeds[asset].price;
        low = isStale(asset, maxAge) ? 0 : high;
        uint256 pushed = _feedOpinionOf(asset);
        if (pushed != 0) (low, high) = (Math.min(low, pushed), Math.max(high, pushed));
        SecondOpinion memory opinion = _opinions[asset];
        if (opinion.source == address(0)) return (low, high);
        try ISwapAdapter(opinion.source).pricesOf(asset, opinion.twapWindow) returns (uint256 spot, uint256 twap) {
            uint256 average = twap == 0 ? spot : twap;
            return (Math.min(low, average), Math.min(Math.max(high, average), type(uint96).max));
        } catch {
            return (0, high);
        }
    }

    /// @inheritdoc IPriceOracle
    function secondOpinionOf(address asset) external view returns (SecondOpinion memory) {
        return _opinions[asset];
    }

    /// @inheritdoc IPriceOracle
    function maxAgeOf(address asset) external view returns (uint256) {
        return _feeds[asset].maxAge;
    }

    /// @inheritdoc IPriceOracle
    function maxDeviationBpsOf(address asset) external view returns (uint256) {
        return _feeds[asset].maxDeviationBps;
    }

    /// @inheritdoc IPriceOracle
    function assetConfig(address asset) external view returns (AssetConfig memory) {
        Feed memory feed = _feeds[asset];
        return AssetConfig({
            maxAge: feed.maxAge, maxDeviationBps: feed.maxDeviationBps, deviationWindow: feed.deviationWindow
        });
    }

    /// @inheritdoc IPriceOracle
    function sequencerFeed() external view returns (address feed, uint256 gracePeriod) {
        return (_sequencer.feed, _sequencer.gracePeriod);
    }

    function _postReport(bytes calldata payload) private {
        bytes calldata report = StreamReport.reportIn(payload);
        bytes32 feedId = StreamReport.feedIdOf(report);
        Stream memory stream = _streamOf(feedId);
        uint256 observedAt = StreamReport.observedAt(report);
        Feed storage feed = _feeds[stream.asset];
        if (observedAt <= feed.observedAt) {
            // forge-lint: disable-next-line(unsafe-typecast): it is not above one of 40 bits
            emit ReportSkipped(stream.asset, feedId, uint64(observedAt));
            return;
        }
        if (observedAt > block.timestamp + MAX_FUTURE_SECONDS) revert PriceFromFuture(stream.asset, observedAt);
        uint96 price = _priceOf(report, feedId, stream, observedAt);
        _verify(payload, report, feedId);

        _store(stream.asset, feed, price, observedAt);
    }

    function _syncFeed(address asset) private {
        (uint96 price, uint256 observedAt) = _feedPriceOf(asset);
        Feed storage feed = _feeds[asset];
        if (observedAt > block.timestamp + MAX_FUTURE_SECONDS) revert PriceFromFuture(asset, observedAt);
        if (observedAt > feed.observedAt) {
            _store(asset, feed, price, observedAt);
        } else {
            // forge-lint: disable-next-line(unsafe-typecast): it is not above one of 40 bits
            emit PriceSkipped(asset, int256(uint256(price)), uint64(observedAt), SkipReason.NotNewer);
        }
    }

    /// @dev Lets an uptime feed that counts blocks see this one.
    function _observeChain() private {
        SequencerCheck memory check = _sequencer;
        if (check.isObserved) IBlockUptimeFeed(check.feed).observe();
    }

    function _set(address asset, int256 price) private {
        if (!_isUpdaterSource(asset)) revert NotUpdaterSource(asset);
        if (!_isStorable(price)) revert InvalidPrice(asset, price);
        Feed storage feed = _feeds[asset];
        uint96 given = _toStored(price);
        (bool isWithin, uint256 anchor) = _checkMove(asset, feed, given);
        if (!isWithin) revert DeviationTooLarge(asset, anchor, given, feed.maxDeviationBps);

        _store(asset, feed, given, block.timestamp);
    }

    function _force(address asset, int256 price) private {
        if (!_isStorable(price)) revert InvalidPrice(asset, price);
        Feed storage feed = _feeds[asset];

        delete _anchors[asset];
        _store(asset, feed, _toStored(price), block.timestamp);
        emit PriceForced(asset, price, feed.roundId, msg.sender);
    }

    function _post(address asset, int256 price, uint64 observedAt) private {
        Feed storage feed = _feeds[asset];
        (bool isSkipped, SkipReason reason) = _reasonToSkip(asset, feed, price, observedAt);
        if (isSkipped) {
            emit PriceSkipped(asset, price, observedAt, reason);
            return;
        }

        _store(asset, feed, _toStored(price), observedAt);
        _addToBatch(asset);
    }

    /// @dev One slot, and one write.
    function _store(address asset, Feed storage feed, uint96 price, uint256 observedAt) private {
        uint40 at = SafeCast.toUint40(Math.min(observedAt, block.timestamp));
        uint32 roundId = feed.roundId + 1;
        (feed.price, feed.observedAt, feed.roundId) = (price, at, roundId);
        emit PriceUpdated(asset, int256(uint256(price)), at, roundId);
    }

    function _startBatch(uint256 assets, uint256 prices) private {
        if (assets != prices) revert LengthMismatch(assets, prices);
        TransientSlot.Uint256Slot batch = BATCH_SLOT.asUint256();
        batch.tstore(batch.tload() + 1);
    }

    function _addToBatch(address asset) private {
        BATCH_OF_ASSET_SLOT.deriveMapping(asset).asUint256().tstore(BATCH_SLOT.asUint256().tload());
    }

    function _isInBatch(address asset) private view returns (bool) {
        return BATCH_OF_ASSET_SLOT.deriveMapping(asset).asUint256().tload() == BATCH_SLOT.asUint256().tload();
    }

    function _reasonToSkip(address asset, Feed storage feed, int256 price, uint64 observedAt)
        private
        returns (bool isSkipped, SkipReason reason)
    {
        if (!_isUpdaterSource(asset)) return (true, SkipReason.OtherSource);
        if (_isInBatch(asset)) return (true, SkipReason.DuplicateInBatch);
        if (!_isStorable(price)) return (true, SkipReason.InvalidPrice);
        if (observedAt <= feed.observedAt) return (true, SkipReason.NotNewer);
        if (observedAt > block.timestamp + MAX_FUTURE_SECONDS) return (true, SkipReason.FromFuture);
        (bool isWithin,) = _checkMove(asset, feed, _toStored(price));
        return (!isWithin, SkipReason.DeviationTooLarge);
    }

    function _heldPriceOf(address asset) internal view override returns (uint256) {
        return _feeds[asset].price;
    }

    function _forgetAnchors(address asset) internal override {
        delete _anchors[asset];
    }

    /// @dev Moves the anchors on. It uses the chain's time, because the updater chooses the time of an observation.
    function _checkMove(address asset, Feed storage feed, uint96 given)
        private
        returns (bool isWithin, uint256 anchor)
    {
        if (feed.roundId == 0 || feed.maxDeviationBps == 0) return (true, 0);
        RollingBound.Anchors memory held = _anchors[asset];
        RollingBound.Anchors memory anchors = held.advanced(feed.price, feed.deviationWindow, block.timestamp);
        (isWithin, anchor) = anchors.check(given, feed.maxDeviationBps);
        if (isWithin && anchors.setAt != held.setAt) _anchors[asset] = anchors;
    }

    function _quoted(address asset) private view returns (Feed memory) {
        Feed memory feed = _feeds[asset];
        if (feed.roundId == 0) revert TokenNotQuoted(asset);
        return feed;
    }

    /// @dev A feed that reverts, or knows nothing yet, counts as down.
    function _sequencerState() private view returns (bool isUp, uint256 graceEnd) {
        SequencerCheck storage check = _sequencer;
        if (check.feed == address(0)) return (true, 0);
        try ISequencerUptimeFeed(check.feed).latestRoundData() returns (
            uint80, int256 answer, uint256 startedAt, uint256, uint80
        ) {
            return (answer == 0 && startedAt != 0, startedAt + check.gracePeriod);
        } catch {
            return (false, 0);
        }
    }

    /// @dev No observation is held that is ahead of the chain's clock.
    function _isOlder(uint256 observedAt, uint256 window) private view returns (bool) {
        return window != 0 && block.timestamp - observedAt > window;
    }

    /// @dev The smaller of the two that is not zero.
    function _window(uint256 own, uint256 asked) private pure returns (uint256) {
        if (own == 0 || asked == 0) return own + asked;
        return Math.min(own, asked);
    }

    function _isStorable(int256 price) private pure returns (bool) {
        return price > 0 && price <= int256(uint256(type(uint96).max));
    }

    function _toStored(int256 price) private pure returns (uint96) {
        return SafeCast.toUint96(SafeCast.toUint256(price));
    }
}
