// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {Test} from "forge-std/Test.sol";
import {ERC8004IdentityRegistry} from "../../src/embedded/ERC8004IdentityRegistry.sol";
import {SmartAccount} from "../../src/embedded/SmartAccount.sol";

contract SmartAccountTest is Test {
    uint256 private constant OWNER_KEY = 0xA11CE;

    address private owner = vm.addr(OWNER_KEY);
    SmartAccount private account;

    function setUp() public {
        account = new SmartAccount(owner);
    }

    function testFuzz_SignsWithItsOwnersKey(bytes32 hash) public view {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(OWNER_KEY, hash);
        assertEq(account.isValidSignature(hash, abi.encodePacked(r, s, v)), IERC1271.isValidSignature.selector);
    }

    function testFuzz_RefusesOtherKeysAndMalformedSignatures(uint256 key, bytes calldata noise) public view {
        bytes32 hash = keccak256("message");
        key = bound(key, 1, type(uint128).max);
        vm.assume(key != OWNER_KEY);
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, hash);
        assertEq(account.isValidSignature(hash, abi.encodePacked(r, s, v)), bytes4(0xffffffff));
        assertEq(account.isValidSignature(hash, noise), bytes4(0xffffffff));
    }

    function test_ActsForItsOwnerOnly() public {
        ERC8004IdentityRegistry identities = new ERC8004IdentityRegistry();
        bytes memory register = abi.encodeWithSignature("register()");

        vm.expectRevert(abi.encodeWithSelector(SmartAccount.NotOwner.selector, address(this), owner));
        account.execute(address(identities), 0, register);

        vm.prank(owner);
        account.execute(address(identities), 0, register);
        assertEq(identities.ownerOf(0), address(account));
    }

    function test_SendsEther() public {
        vm.deal(address(this), 3 ether);
        (bool received,) = address(account).call{value: 3 ether}("");
        assertTrue(received);

        address payee = makeAddr("payee");
        vm.prank(owner);
        account.execute(payee, 1 ether, "");
        assertEq(payee.balance, 1 ether);
        assertEq(address(account).balance, 2 ether);
    }

    function test_PassesARevertOnUnchanged() public {
        SmartAccount other = new SmartAccount(makeAddr("another owner"));
        bytes memory call = abi.encodeCall(SmartAccount.execute, (address(this), 0, ""));

        vm.expectRevert(abi.encodeWithSelector(SmartAccount.NotOwner.selector, address(account), other.OWNER()));
        vm.prank(owner);
        account.execute(address(other), 0, call);
    }
}
