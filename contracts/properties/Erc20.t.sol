// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {
    CryticERC20ExternalBasicProperties
} from "@crytic/properties/contracts/ERC20/external/properties/ERC20ExternalBasicProperties.sol";
import {ITokenMock} from "@crytic/properties/contracts/ERC20/external/util/ITokenMock.sol";
import {VaultUnderTest} from "./VaultUnderTest.sol";

/// @notice The properties of ERC-20 by Trail of Bits (crytic/properties), unchanged, of the vault's shares
contract ShareProperties is CryticERC20ExternalBasicProperties {
    constructor(address shares) {
        token = ITokenMock(shares);
    }
}

/// @notice A property fails with an assertion; one that reverts otherwise does not apply, as for the fuzzers they are written for
contract Erc20PropertiesTest is VaultUnderTest {
    ShareProperties private properties;

    function setUp() public virtual {
        _setUpShares(0);
    }

    function _setUpShares(uint32 holdingTime) internal {
        _deployVault(0, holdingTime);
        properties = new ShareProperties(address(vault));
        address[5] memory holders =
            [address(properties), address(this), address(0x10000), address(0x20000), address(0x30000)];
        for (uint256 i; i < holders.length; ++i) {
            _deposit(holders[i], 1_000e6);
        }
        vault.approve(address(properties), type(uint256).max);
    }

    function test_BalancesAndSupply() public {
        assertTrue(_holds(abi.encodeCall(properties.test_ERC20external_userBalanceNotHigherThanSupply, ())));
        assertTrue(_holds(abi.encodeCall(properties.test_ERC20external_userBalancesLessThanTotalSupply, ())));
        assertTrue(_holds(abi.encodeCall(properties.test_ERC20external_zeroAddressBalance, ())));
        assertFalse(_holds(abi.encodeCall(properties.test_ERC20external_transferToZeroAddress, ())), "reverts");
    }

    function test_Transfers(address target, uint256 amount) public {
        assertFalse(
            _holds(abi.encodeCall(properties.test_ERC20external_transferFromToZeroAddress, (amount))), "reverts"
        );
        assertFalse(_holds(abi.encodeCall(properties.test_ERC20external_transferMoreThanBalance, (target))), "reverts");
        assertFalse(
            _holds(abi.encodeCall(properties.test_ERC20external_transferFromMoreThanBalance, (target))), "reverts"
        );
        bool applies = target != address(0) && target != address(properties) && target != address(this);
        assertEq(_holds(abi.encodeCall(properties.test_ERC20external_selfTransferFrom, (amount))), true);
        assertEq(_holds(abi.encodeCall(properties.test_ERC20external_selfTransfer, (amount))), true);
        _holds(abi.encodeCall(properties.test_ERC20external_transferZeroAmount, (target)));
        _holds(abi.encodeCall(properties.test_ERC20external_transferFromZeroAmount, (target)));
        bool isMoved = _holds(abi.encodeCall(properties.test_ERC20external_transfer, (target, amount)));
        bool isMovedFrom = _holds(abi.encodeCall(properties.test_ERC20external_transferFrom, (target, amount)));
        if (applies) assertTrue(isMoved && isMovedFrom, "a transfer does not apply");
    }

    function test_Allowances(address target, uint256 amount) public {
        _holds(abi.encodeCall(properties.test_ERC20external_setAllowance, (target, amount)));
        _holds(abi.encodeCall(properties.test_ERC20external_setAllowanceTwice, (target, amount)));
        vault.approve(address(properties), type(uint256).max - 1);
        _holds(abi.encodeCall(properties.test_ERC20external_spendAllowanceAfterTransfer, (target, amount)));
    }

    /// @return applies Whether the property was checked to its end
    function _holds(bytes memory call) private returns (bool applies) {
        bytes memory reason;
        (applies, reason) = address(properties).call(call);
        if (!applies) assertFalse(bytes4(reason) == bytes4(keccak256("Panic(uint256)")), "a property is broken");
    }
}
