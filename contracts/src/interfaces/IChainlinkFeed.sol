// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

/// @title What is read of a Chainlink L2 sequencer uptime feed
interface ISequencerUptimeFeed {
    /// @notice `answer` 0 = the sequencer is up, and has been since `startedAt`; `startedAt` 0 = nothing is known yet
    function latestRoundData()
        external
        view
        returns (uint80 roundId, int256 answer, uint256 startedAt, uint256 updatedAt, uint80 answeredInRound);
}

/// @title What is read of a Chainlink price feed: `answer` is the price, observed at `updatedAt`
interface IAggregatorV3 is ISequencerUptimeFeed {
    function decimals() external view returns (uint8);
}

/// @title An uptime feed that infers gaps from how many blocks the chain has made
interface IBlockUptimeFeed is ISequencerUptimeFeed {
    /// @notice Remembers the present block, and when the last gap ended; any account
    function observe() external;
}
