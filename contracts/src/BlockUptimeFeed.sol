// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {IBlockUptimeFeed, ISequencerUptimeFeed} from "./interfaces/IChainlinkFeed.sol";
import {BoundedCall} from "./libraries/BoundedCall.sol";

/// @title An uptime feed for chains that have none
/// @notice A chain that makes blocks at a steady rate, also without transactions, has made too few of them after a gap. Every look
/// compares the time since the last observation with the blocks since then, so a gap counts from the first look after it, whether
/// or not anyone observed it; an observation makes its end permanent.
/// @dev It does not see a gap shorter than `maxGapSeconds`, a gap that blocks faster than one per `maxBlockMs` have made up for
/// (so choose that close to the usual time), a sequencer that makes blocks but drops transactions, nor batches that are not posted.
/// Blocks slower than `maxBlockMs` look like a gap. It starts with a grace period of its own.
contract BlockUptimeFeed is IBlockUptimeFeed {
    using SafeCast for uint256;

    /// @dev One slot.
    struct Observation {
        uint64 timestamp;
        uint64 blockNumber;
        uint64 upSince;
    }

    event GapSeen(uint256 from, uint256 missingSeconds);

    error InvalidCadence(uint256 maxBlockMs, uint256 maxGapSeconds);

    /// @dev Arbitrum's, whose `block.number` is an estimate of Ethereum's.
    address private constant ARB_SYS = address(100);
    bytes4 private constant ARB_BLOCK_NUMBER = bytes4(keccak256("arbBlockNumber()"));
    uint256 private constant MILLISECONDS = 1000;

    uint256 public immutable maxBlockMs;
    uint256 public immutable maxGapSeconds;
    bool private immutable _isArbitrum;

    /// @notice The block that was observed last, and when the chain has come back from a gap
    Observation public last;

    /// @param maxBlockMs_ The longest time between two blocks on average, in milliseconds
    constructor(uint256 maxBlockMs_, uint256 maxGapSeconds_) {
        if (maxBlockMs_ == 0 || maxGapSeconds_ == 0) revert InvalidCadence(maxBlockMs_, maxGapSeconds_);
        maxBlockMs = maxBlockMs_;
        maxGapSeconds = maxGapSeconds_;
        _isArbitrum = BoundedCall.get(ARB_SYS, ARB_BLOCK_NUMBER) != 0;
        _observe(block.timestamp);
    }

    /// @inheritdoc IBlockUptimeFeed
    /// @dev A shorter time cannot hold a gap, so most calls write nothing.
    function observe() external {
        Observation memory seen = last;
        if (block.timestamp - seen.timestamp <= maxGapSeconds / 2) return;
        uint256 missing = _missingSeconds(seen);
        if (missing > maxGapSeconds) emit GapSeen(seen.timestamp, missing);
        _observe(missing > maxGapSeconds ? block.timestamp : seen.upSince);
    }

    /// @inheritdoc ISequencerUptimeFeed
    function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80) {
        Observation memory seen = last;
        uint256 upSince = _missingSeconds(seen) > maxGapSeconds ? block.timestamp : seen.upSince;
        return (1, 0, upSince, block.timestamp, 1);
    }

    function _observe(uint256 upSince) private {
        last = Observation(uint64(block.timestamp), _blockNumber().toUint64(), upSince.toUint64());
    }

    /// @dev How much of the time since an observation no block accounts for.
    function _missingSeconds(Observation memory seen) private view returns (uint256) {
        uint256 elapsed = block.timestamp - seen.timestamp;
        uint256 accounted = (_blockNumber() - seen.blockNumber) * maxBlockMs / MILLISECONDS;
        return elapsed > accounted ? elapsed - accounted : 0;
    }

    function _blockNumber() private view returns (uint256) {
        return _isArbitrum ? BoundedCall.get(ARB_SYS, ARB_BLOCK_NUMBER) : block.number;
    }
}
