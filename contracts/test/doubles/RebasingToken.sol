// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// @title A token that the listing rule refuses
/// @notice It stores shares, and `rebase` changes what each of them stands for: every balance changes without a transfer.
contract RebasingToken is ERC20 {
    uint256 private constant _ONE = 1e18;

    /// @dev 0 stands for one: a test puts this code where the storage of another token is.
    uint256 private _multiplier;

    constructor(string memory name_, string memory symbol_) ERC20(name_, symbol_) {}

    /// @param multiplier What a share stands for, with 18 decimals.
    function rebase(uint256 multiplier) external {
        _multiplier = multiplier;
    }

    function sharesOf(address account) public view returns (uint256) {
        return super.balanceOf(account);
    }

    function balanceOf(address account) public view override returns (uint256) {
        return sharesOf(account) * _current() / _ONE;
    }

    function totalSupply() public view override returns (uint256) {
        return super.totalSupply() * _current() / _ONE;
    }

    function _update(address from, address to, uint256 amount) internal override {
        super._update(from, to, amount * _ONE / _current());
    }

    function _current() private view returns (uint256) {
        return _multiplier == 0 ? _ONE : _multiplier;
    }
}
