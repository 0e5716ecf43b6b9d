// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ISequencerUptimeFeed} from "../../src/interfaces/IChainlinkFeed.sol";

/// @title Chainlink's uptime feed as the oracle meets it, told what to say
contract UptimeFeed is ISequencerUptimeFeed {
    error Silent();

    int256 private _answer;
    uint256 private _startedAt;
    bool private _isSilent;

    function say(int256 answer, uint256 startedAt) external {
        (_answer, _startedAt, _isSilent) = (answer, startedAt, false);
    }

    function fallSilent() external {
        _isSilent = true;
    }

    /// @inheritdoc ISequencerUptimeFeed
    function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80) {
        if (_isSilent) revert Silent();
        return (1, _answer, _startedAt, block.timestamp, 1);
    }
}
