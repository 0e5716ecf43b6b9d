// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title USD prices with 8 decimals, many assets in one contract, each from one source
/// @notice `roundId` of an asset grows by one with every accepted update: the exact order of its observations. It never
/// falls, not even when another oracle replaces this one (`inheritFrom`).
interface IPriceOracle {
    /// @notice Why `post` skipped an observation
    enum SkipReason {
        /// The held observation is as new or newer
        NotNewer,
        /// Observed too far in the future
        FromFuture,
        /// The price is zero, negative or too large
        InvalidPrice,
        /// The move is beyond the asset's bound
        DeviationTooLarge,
        /// The batch has already moved this asset
        DuplicateInBatch,
        /// The asset's prices come from elsewhere than from the updater
        OtherSource
    }

    /// @notice Where an asset's prices come from; `forcePrice` works with each
    enum SourceKind {
        /// The holder of the updater role
        Updater,
        /// Signed reports, which any account may post
        Reports,
        /// A push feed, which any account may have read
        Feed
    }

    /// @param feedIds Of reports: the asset's streams. The first is for regular hours, and the only one outside 24/5; the second
    /// for extended hours, the third for the night.
    /// @param aggregator The push feed; of another source optional, and then a second opinion on the price of the token for shares
    /// @param maxSpreadBps Of reports of schema 11: the widest difference of bid and ask, relative to the price; 0 = no bound
    /// @param isSharePrice Whether the price is one of a share, which the token's `uiMultiplier` turns into one of the token
    struct Source {
        SourceKind kind;
        bytes32[] feedIds;
        address aggregator;
        uint16 maxSpreadBps;
        bool isSharePrice;
    }

    /// @param maxAge Seconds after which the price is stale; 0 = no window of its own
    /// @param maxDeviationBps The largest move within half of `deviationWindow`, in one update or in many; 0 = no bound
    /// @param deviationWindow Seconds that the bound looks back
    struct AssetConfig {
        uint32 maxAge;
        uint32 maxDeviationBps;
        uint24 deviationWindow;
    }

    /// @param source The contract that knows the pool's prices (`ISwapAdapter.pricesOf`); the zero address when there is none
    /// @param twapWindow Seconds of the average; a pool that remembers less is averaged over what it remembers
    struct SecondOpinion {
        address source;
        uint32 twapWindow;
    }

    event PriceUpdated(address indexed asset, int256 price, uint64 observedAt, uint80 roundId);
    event PriceForced(address indexed asset, int256 price, uint80 roundId, address indexed by);
    event PriceSkipped(address indexed asset, int256 price, uint64 observedAt, SkipReason reason);
    event PriceInherited(address indexed asset, int256 price, uint64 observedAt, uint80 roundId, address indexed from);
    event AssetConfigUpdated(address indexed asset, uint32 maxAge, uint32 maxDeviationBps, uint24 deviationWindow);
    event SecondOpinionUpdated(address indexed asset, address indexed source, uint32 twapWindow);
    event SequencerFeedUpdated(address indexed feed, uint256 gracePeriod);
    event SourceUpdated(address indexed asset, Source source);
    event VerifierUpdated(address indexed previous, address indexed current);

    /// @notice A report that is not newer than the stored price. Its signatures were not checked: anyone can cause this event.
    event ReportSkipped(address indexed asset, bytes32 indexed feedId, uint64 observedAt);

    error TokenNotQuoted(address asset);
    error StalePrice(address asset, uint256 updatedAt, uint256 maxAge);
    /// @param held The price held when the present half of the window began, or half a window before that
    error DeviationTooLarge(address asset, uint256 held, uint256 given, uint256 maxDeviationBps);
    /// @notice A deviation bound needs a window, and a window a bound
    error InvalidDeviationBound(address asset, uint256 maxDeviationBps, uint256 deviationWindow);
    error InvalidPrice(address asset, int256 price);
    /// @notice A batch moves an asset at most once
    error DuplicateAsset(address asset);
    error LengthMismatch(uint256 assets, uint256 prices);
    error GracePeriodTooLong(uint256 gracePeriod, uint256 max);
    error SequencerDown();
    error SequencerGracePeriod(uint256 until);

    /// @notice A report or push feed cannot be the source as it was named
    error InvalidSource(address asset);
    error StreamTaken(bytes32 feedId, address asset);
    error NotUpdaterSource(address asset);
    error NotFeedSource(address asset);
    /// @notice No asset's prices come from this stream
    error UnknownStream(bytes32 feedId);
    error UnknownSchema(bytes32 feedId);
    error MalformedReport();
    /// @param reason What the verifier reverted with, or returned instead of the report
    error ReportNotVerified(bytes32 feedId, bytes reason);
    error ReportExpired(address asset, uint256 expiresAt);
    error PriceFromFuture(address asset, uint256 observedAt);
    /// @notice Status 1 is closed in schemas 8 and 10, and pre-market in 24/5 streams of schema 11
    error MarketNotTrading(address asset, uint256 status);
    error SpreadTooWide(address asset, uint256 spreadBps, uint256 maxSpreadBps);
    /// @notice The token does not say how many shares it stands for
    error MultiplierUnknown(address asset);
    /// @notice The share's price is from before the token's multiplier changed
    error PriceBeforeMultiplier(address asset, uint256 observedAt, uint256 effectiveAt);
    /// @notice The share's price is already that of after a split, and the token's multiplier is not
    error PriceAheadOfMultiplier(address asset, int256 price, uint256 effectiveAt);
    /// @notice The token's issuer advises against relying on its push feed
    error FeedPaused(address asset);
    error ZeroAddress();

    /// @notice Quotes one asset as observed now; only the updater role. Reverts `DeviationTooLarge` or `NotUpdaterSource`.
    function setPrice(address asset, int256 price) external;

    /// @notice Quotes many assets as observed now, all or none; only the updater role
    function setPrices(address[] calldata assets, int256[] calldata prices) external;

    /// @notice Quotes many assets with the observations' own times; only the updater role.
    /// An observation that cannot be taken is skipped with `PriceSkipped`, never a revert.
    function post(address[] calldata assets, int256[] calldata prices, uint64[] calldata observedAt) external;

    /// @notice Quotes one asset as observed now, without the deviation bound; only the forcing role. The bound counts
    /// from this price again.
    function forcePrice(address asset, int256 price) external;

    /// @notice Sets how old a price may become and how far it may move; only the admin
    function setAssetConfig(address asset, AssetConfig calldata config) external;

    /// @notice Lets shares be priced with the average of a pool as well from now on; only the admin
    function setSecondOpinion(address asset, SecondOpinion calldata opinion) external;

    /// @notice Continues the prices and rounds of the oracle that this one replaces; only the admin. The sources must be the same.
    /// @dev A position waits for a round above the one it was opened on: an oracle that starts again at round 1 would
    /// silence the exits of every older position. An asset keeps the newer one of the two prices and the higher round.
    function inheritFrom(address predecessor, address[] calldata assets) external;

    /// @notice Sets the contract that verifies reports; only the admin
    function setVerifier(address verifierProxy) external;

    /// @notice Sets where an asset's prices come from; only the admin. Its last price stays until the new source has a newer one.
    function setSource(address asset, Source calldata source) external;

    /// @notice Stores the prices of signed reports, all or none. A report that is not newer than the stored price is skipped
    /// with `ReportSkipped`, so nobody can break the trades of others by posting a newer one.
    /// @dev The price counts as seen at the report's observation, or when it last changed, whichever is earlier.
    /// @param payloads The envelopes that the verifier takes
    function postReports(bytes[] calldata payloads) external;

    /// @notice Stores what the push feeds of these assets say, all or none; skips what is not newer with `PriceSkipped`
    function syncFeeds(address[] calldata assets) external;

    /// @notice `postReports` and `syncFeeds`
    function postPrices(bytes[] calldata payloads, address[] calldata assets) external;

    /// @param feed A Chainlink-shaped uptime feed (0 = up); the zero address switches the check off. One with `observe()`
    /// (`BlockUptimeFeed`) is called with each post.
    function setSequencerFeed(address feed, uint256 gracePeriod) external;

    function latestRoundData(address asset)
        external
        view
        returns (uint80 roundId, int256 answer, uint256 startedAt, uint256 updatedAt, uint80 answeredInRound);
    function decimals(address asset) external view returns (uint8);

    /// @notice The price, which is not older than the smaller non-zero one of `maxAge` and the asset's own window
    /// @dev Reverts `TokenNotQuoted`, `StalePrice`, `SequencerDown` or `SequencerGracePeriod`.
    function freshPrice(address asset, uint256 maxAge)
        external
        view
        returns (uint256 price, uint64 updatedAt, uint80 roundId);

    /// @notice The last price however old, zeros when the asset was never quoted; never reverts
    function peekPrice(address asset) external view returns (uint256 price, uint64 updatedAt, uint80 roundId);

    /// @notice Whether `freshPrice` would revert
    function isStale(address asset, uint256 maxAge) external view returns (bool);

    /// @notice The lowest and the highest one of the last price, the average price of the asset's pool, and what a push feed says
    /// that is not the source, as far as there are such; never reverts. A pool without a history counts with its present price.
    /// @return low 0 when the price is stale (`isStale`), or when the pool's prices cannot be read
    function priceRangeOf(address asset, uint256 maxAge) external view returns (uint256 low, uint256 high);
    function secondOpinionOf(address asset) external view returns (SecondOpinion memory);
    function maxAgeOf(address asset) external view returns (uint256);
    function maxDeviationBpsOf(address asset) external view returns (uint256);
    function assetConfig(address asset) external view returns (AssetConfig memory);
    function sequencerFeed() external view returns (address feed, uint256 gracePeriod);
    function verifier() external view returns (address);
    function sourceOf(address asset) external view returns (Source memory);

    /// @notice The zero address for a stream that is no asset's
    function assetOfStream(bytes32 feedId) external view returns (address);
}
