// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {Test} from "forge-std/Test.sol";
import {UsdgToken} from "../../src/embedded/UsdgToken.sol";

contract UsdgTokenTest is Test {
    uint256 private constant PAYER_KEY = 0xA11CE;

    UsdgToken private usdg;
    address private payer = vm.addr(PAYER_KEY);
    address private payee = makeAddr("payee");

    function setUp() public {
        vm.warp(1_000_000);
        usdg = new UsdgToken(address(this), "Global Dollar", "USDG", "1");
        usdg.mint(payer, 100e6);
    }

    function test_TellsNoDomainAndSignsInIt() public {
        for (uint256 i; i < 2; ++i) {
            vm.expectRevert(bytes4(0x800ab12c));
            if (i == 0) usdg.version();
            else usdg.eip712Domain();
        }
        bytes32 domainType =
            keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
        bytes memory domain =
            abi.encode(domainType, keccak256("Global Dollar"), keccak256("1"), block.chainid, address(usdg));
        assertEq(usdg.DOMAIN_SEPARATOR(), keccak256(domain));
        (uint8 v, bytes32 r, bytes32 s) = _sign();
        usdg.transferWithAuthorization(payer, payee, 1e6, 0, block.timestamp + 60, 0, v, r, s);
        assertEq(usdg.balanceOf(payee), 1e6);
    }

    function test_TakesPermitsOfItsDomain() public {
        bytes32 structHash =
            keccak256(abi.encode(usdg.PERMIT_TYPEHASH(), payer, payee, 5e6, usdg.nonces(payer), block.timestamp + 60));
        (uint8 v, bytes32 r, bytes32 s) =
            vm.sign(PAYER_KEY, keccak256(abi.encodePacked(hex"1901", usdg.DOMAIN_SEPARATOR(), structHash)));
        usdg.permit(payer, payee, 5e6, block.timestamp + 60, v, r, s);
        assertEq(usdg.allowance(payer, payee), 5e6);
    }

    function test_TakesNoAuthorizationOfAnyLength() public {
        (uint8 v, bytes32 r, bytes32 s) = _sign();
        vm.expectRevert(UsdgToken.FacetNotFound.selector);
        usdg.transferWithAuthorization(payer, payee, 1e6, 0, block.timestamp + 60, 0, abi.encodePacked(r, s, v));
    }

    function test_NobodyMovesIt_WhileItsIssuerStopsTransfers() public {
        usdg.setPaused(true);
        vm.prank(payer);
        vm.expectRevert(bytes4(0xab35696f));
        usdg.transfer(payee, 1);
        usdg.setPaused(false);

        vm.prank(payer);
        usdg.approve(address(this), 1);
        address[3] memory accounts = [payer, payee, address(this)];
        for (uint256 i; i < accounts.length; ++i) {
            usdg.setFrozen(accounts[i], true);
            vm.expectRevert(bytes4(0x1fd1cc44));
            usdg.transferFrom(payer, payee, 1);
            usdg.setFrozen(accounts[i], false);
        }
        usdg.transferFrom(payer, payee, 1);
    }

    function test_OnlyItsIssuerStopsTransfers() public {
        bytes memory refusal = abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, payer, usdg.DEFAULT_ADMIN_ROLE()
        );
        vm.startPrank(payer);
        vm.expectRevert(refusal);
        usdg.setPaused(true);
        vm.expectRevert(refusal);
        usdg.setFrozen(payee, true);
    }

    function _sign() private view returns (uint8 v, bytes32 r, bytes32 s) {
        bytes32 structHash = keccak256(
            abi.encode(
                usdg.TRANSFER_WITH_AUTHORIZATION_TYPEHASH(), payer, payee, 1e6, 0, block.timestamp + 60, bytes32(0)
            )
        );
        return vm.sign(PAYER_KEY, keccak256(abi.encodePacked(hex"1901", usdg.DOMAIN_SEPARATOR(), structHash)));
    }
}
