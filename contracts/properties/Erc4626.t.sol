// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ERC4626Test} from "erc4626-tests/ERC4626.test.sol";
import {VaultUnderTest} from "./VaultUnderTest.sol";

/// @notice The properties of ERC-4626 by a16z (erc4626-tests), unchanged, with amounts up to 18 trillion USDC
contract Erc4626PropertiesTest is ERC4626Test, VaultUnderTest {
    function setUp() public virtual override {
        _setUpVault(0, 0);
    }

    function _setUpVault(uint256 feeBps, uint32 holdingTime) internal {
        _deployVault(feeBps, holdingTime);
        (_underlying_, _vault_) = (address(usdc), address(vault));
        _vaultMayBeEmpty = true;
    }

    /// @dev Users are four accounts, amounts have 64 bits, and what the vault is given counts for nothing.
    function setUpVault(Init memory init) public override {
        for (uint256 i; i < N; ++i) {
            init.user[i] = makeAddr(vm.toString(i));
            (init.share[i], init.asset[i]) = (init.share[i] % 2 ** 64, init.asset[i] % 2 ** 64);
        }
        init.yield = int256(uint256(init.yield) % 2 ** 64);
        super.setUpVault(init);
    }
}

/// @notice The same with a fee of 0.1 % each way, which stays in the vault
contract Erc4626PropertiesWithFeesTest is Erc4626PropertiesTest {
    function setUp() public override {
        _setUpVault(10, 0);
    }
}
