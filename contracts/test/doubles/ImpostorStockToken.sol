// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// @title A stranger's token with the name, symbol and multiplier of a stock token, and without its issuer
contract ImpostorStockToken is ERC20 {
    uint256 public constant uiMultiplier = 1e18;

    constructor(string memory name_, string memory symbol_, address holder) ERC20(name_, symbol_) {
        _mint(holder, 1e30);
    }
}
