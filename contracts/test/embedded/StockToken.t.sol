// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {Test} from "forge-std/Test.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";

contract StockTokenTest is Test {
    function testFuzz_HasTheNameSymbolAndDecimalsItWasGiven(
        string calldata name,
        string calldata symbol,
        uint8 decimals
    ) public {
        StockToken token = new StockToken(name, symbol, decimals, address(this));
        assertEq(token.name(), name);
        assertEq(token.symbol(), symbol);
        assertEq(token.decimals(), decimals);
    }

    function test_OnlyAMinterMints() public {
        StockToken token = new StockToken("NVIDIA", "NVDA", 18, address(this));
        address stranger = makeAddr("stranger");
        bytes32 role = token.MINTER_ROLE();

        vm.expectRevert(
            abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, stranger, role)
        );
        vm.prank(stranger);
        token.mint(stranger, 1);

        token.grantRole(role, stranger);
        vm.prank(stranger);
        token.mint(stranger, 5e18);
        assertEq(token.balanceOf(stranger), 5e18);
        assertEq(token.totalSupply(), 5e18);
    }
}
