// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ISequencerUptimeFeed} from "./ISequencerUptimeFeed.sol";

/// @title What is read of a Chainlink price feed: `answer` is the price, observed at `updatedAt`
interface IAggregatorV3 is ISequencerUptimeFeed {
    function decimals() external view returns (uint8);
}
