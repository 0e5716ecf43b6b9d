// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {UsdcToken} from "../../src/embedded/UsdcToken.sol";

/// @title A dollar whose issuer blocks accounts as USDC's does
contract BlockableUsdc is UsdcToken {
    mapping(address account => bool) public isBlacklisted;

    constructor(address admin) UsdcToken(admin, "USD Coin", "USDC", "2") {}

    function setBlacklisted(address account, bool blacklisted) external {
        isBlacklisted[account] = blacklisted;
    }

    function _update(address from, address to, uint256 amount) internal override {
        require(!isBlacklisted[from] && !isBlacklisted[to], "Blacklistable: account is blacklisted");
        super._update(from, to, amount);
    }
}
