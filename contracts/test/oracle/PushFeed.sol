// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAggregatorV3} from "../../src/interfaces/IChainlinkFeed.sol";

/// @title Chainlink's push feed as the oracle meets it, told what to say
contract PushFeed is IAggregatorV3 {
    error Silent();

    uint8 public immutable decimals;
    int256 private _answer;
    uint256 private _updatedAt;
    bool private _isSilent;

    constructor(uint8 decimals_) {
        decimals = decimals_;
    }

    function say(int256 answer, uint256 updatedAt) external {
        (_answer, _updatedAt) = (answer, updatedAt);
    }

    function fallSilent() external {
        _isSilent = true;
    }

    function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80) {
        if (_isSilent) revert Silent();
        return (1, _answer, _updatedAt, _updatedAt, 1);
    }
}
