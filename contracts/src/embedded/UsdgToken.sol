// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {UsdcToken} from "./UsdcToken.sol";

/// @title A dollar that does not tell its signing domain, and whose issuer can stop transfers, as USDG on Robinhood Chain
/// @notice There it is a proxy over facets, and what no facet has reverts: `version()`, `eip712Domain()`, and here also the
/// transfer by an authorization of any length, which nobody has seen work.
contract UsdgToken is UsdcToken {
    bytes4 private constant TRANSFER_BY_BYTES = 0xcf092995;

    bool public paused;
    mapping(address account => bool) public isFrozen;

    error FacetNotFound();
    error ContractPaused();
    error AddressFrozen();

    constructor(address admin, string memory name_, string memory symbol_, string memory version_)
        UsdcToken(admin, name_, symbol_, version_)
    {}

    function setPaused(bool isPaused) external onlyRole(DEFAULT_ADMIN_ROLE) {
        paused = isPaused;
    }

    function setFrozen(address account, bool isFrozen_) external onlyRole(DEFAULT_ADMIN_ROLE) {
        isFrozen[account] = isFrozen_;
    }

    function version() external pure override returns (string memory) {
        revert FacetNotFound();
    }

    function eip712Domain()
        public
        pure
        override
        returns (bytes1, string memory, string memory, uint256, address, bytes32, uint256[] memory)
    {
        revert FacetNotFound();
    }

    function _update(address from, address to, uint256 value) internal override {
        if (msg.sig == TRANSFER_BY_BYTES) revert FacetNotFound();
        if (paused) revert ContractPaused();
        if (isFrozen[from] || isFrozen[to] || isFrozen[msg.sender]) revert AddressFrozen();
        super._update(from, to, value);
    }
}
