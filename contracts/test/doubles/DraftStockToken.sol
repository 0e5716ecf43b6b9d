// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// @title A token of the standard's earlier drafts, or one that only looks like a stock token
/// @notice `variant` selects what differs from the deployed token.
contract DraftStockToken is ERC20 {
    /// @dev SetAt: ERCs@20f0a648, whose event has 4 values. TransferWithUI: ERCs@6f344ae1, whose transfers are logged as
    /// `TransferWithUIAmount`. Testnet: the implementation on 46630, whose `oraclePaused` reverts.
    enum Variant {
        SetAt,
        TransferWithUI,
        Testnet
    }

    Variant private immutable _VARIANT;
    uint256 private _multiplier = 1e18;
    uint256 public newUIMultiplier = 1e18;
    uint256 public effectiveAt;
    bool public paused;
    bool public tokenPaused;

    event UIMultiplierUpdated(
        uint256 oldMultiplier, uint256 newMultiplier, uint256 setAtTimestamp, uint256 effectiveAtTimestamp
    );
    event UIMultiplierUpdated(uint256 oldMultiplier, uint256 newMultiplier, uint256 effectiveAtTimestamp);
    event TransferWithUIAmount(address indexed from, address indexed to, uint256 amount, uint256 uiAmount);

    error OraclePauseUnknown();

    constructor(string memory name_, string memory symbol_, Variant variant) ERC20(name_, symbol_) {
        _VARIANT = variant;
    }

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function updateMultiplier(uint256 multiplier, uint256 effectiveAt_) external {
        uint256 current = uiMultiplier();
        if (_VARIANT == Variant.SetAt) emit UIMultiplierUpdated(current, multiplier, block.timestamp, effectiveAt_);
        else emit UIMultiplierUpdated(current, multiplier, effectiveAt_);
        (_multiplier, newUIMultiplier, effectiveAt) = (current, multiplier, effectiveAt_);
    }

    function oraclePaused() external view returns (bool) {
        if (_VARIANT == Variant.Testnet) revert OraclePauseUnknown();
        return false;
    }

    function uiMultiplier() public view returns (uint256) {
        return block.timestamp >= effectiveAt ? newUIMultiplier : _multiplier;
    }

    function _update(address from, address to, uint256 amount) internal override {
        super._update(from, to, amount);
        if (_VARIANT == Variant.TransferWithUI) {
            emit TransferWithUIAmount(from, to, amount, amount * uiMultiplier() / 1e18);
        }
    }
}
