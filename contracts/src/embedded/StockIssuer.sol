// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {BeaconProxy} from "@openzeppelin/contracts/proxy/beacon/BeaconProxy.sol";
import {UpgradeableBeacon} from "@openzeppelin/contracts/proxy/beacon/UpgradeableBeacon.sol";
import {ScaledStockToken} from "./ScaledStockToken.sol";

/// @title The issuer of the embedded chain's stock tokens: registry, beacon and block list in one contract
/// @notice One owner upgrades every token at once, pauses and blocks all of them, and mints and burns, without a
/// timelock, as the issuer on chain 4663 does.
contract StockIssuer is UpgradeableBeacon {
    bool public paused;
    mapping(address account => bool) public isBlocked;

    event Deployed(bytes32 indexed uid, address stock, string name, string symbol);
    event PausedUpdated(bool paused);
    event BlockedUpdated(address indexed account, bool blocked);

    /// @param implementation_ A `ScaledStockToken`
    constructor(address implementation_, address owner_) UpgradeableBeacon(implementation_, owner_) {}

    /// @notice Deploys a token; the first is at the address of this contract's nonce 1
    function deploy(string calldata name, string calldata symbol) external onlyOwner returns (address stock) {
        stock = address(new BeaconProxy(address(this), abi.encodeCall(ScaledStockToken.initialize, (name, symbol))));
        emit Deployed(keccak256(bytes(symbol)), stock, name, symbol);
    }

    function setPaused(bool paused_) external onlyOwner {
        paused = paused_;
        emit PausedUpdated(paused_);
    }

    function setBlocked(address account, bool blocked) external onlyOwner {
        isBlocked[account] = blocked;
        emit BlockedUpdated(account, blocked);
    }
}
