// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC4626} from "@openzeppelin/contracts/token/ERC20/extensions/ERC4626.sol";
import {RebasingToken} from "./RebasingToken.sol";

/// @title The ERC-4626 form of a rebasing token, in which balances change by transfers only
contract WrappedRebasingToken is ERC4626 {
    constructor(RebasingToken asset_) ERC20("Wrapped", "WRBS") ERC4626(asset_) {}
}
