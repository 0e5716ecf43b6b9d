// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {Test} from "forge-std/Test.sol";
import {Timelock} from "../../src/Timelock.sol";
import {TokenRegistry} from "../../src/TokenRegistry.sol";
import {TwoStepAdmin} from "../../src/access/TwoStepAdmin.sol";

contract TwoStepAdminTest is Test {
    bytes32 private constant ADMIN = bytes32(0);

    TokenRegistry private managed;
    address private next = makeAddr("next");
    address private stranger = makeAddr("stranger");

    function setUp() public {
        managed = new TokenRegistry(address(this), makeAddr("oracle"));
    }

    function test_TheAdminHandsOverInTwoSteps() public {
        vm.expectEmit(address(managed));
        emit TwoStepAdmin.DefaultAdminTransferStarted(address(this), next);
        managed.beginDefaultAdminTransfer(next);
        assertEq(managed.pendingDefaultAdmin(), next);
        assertTrue(managed.hasRole(ADMIN, address(this)), "nothing changes before the successor accepts");

        vm.expectEmit(address(managed));
        emit TwoStepAdmin.DefaultAdminTransferred(address(this), next);
        vm.prank(next);
        managed.acceptDefaultAdminTransfer();
        assertEq(managed.defaultAdmin(), next);
        assertEq(managed.pendingDefaultAdmin(), address(0));
        assertTrue(managed.hasRole(ADMIN, next));
        assertFalse(managed.hasRole(ADMIN, address(this)));
    }

    function test_OnlyTheNamedAccountAcceptsAndOnlyUntilTheTransferIsCancelled() public {
        managed.beginDefaultAdminTransfer(next);
        vm.expectRevert(abi.encodeWithSelector(TwoStepAdmin.NotPendingDefaultAdmin.selector, stranger, next));
        vm.prank(stranger);
        managed.acceptDefaultAdminTransfer();

        managed.beginDefaultAdminTransfer(address(0));
        vm.expectRevert(abi.encodeWithSelector(TwoStepAdmin.NotPendingDefaultAdmin.selector, next, address(0)));
        vm.prank(next);
        managed.acceptDefaultAdminTransfer();
    }

    function test_OnlyTheAdminNamesASuccessor() public {
        vm.expectRevert(
            abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, stranger, ADMIN)
        );
        vm.prank(stranger);
        managed.beginDefaultAdminTransfer(stranger);
    }

    function test_ThereIsNeverASecondAdminAndNeverNone() public {
        bytes memory refusal = abi.encodeWithSelector(TwoStepAdmin.DefaultAdminIsTransferredInTwoSteps.selector);
        vm.expectRevert(refusal);
        managed.grantRole(ADMIN, next);
        vm.expectRevert(refusal);
        managed.revokeRole(ADMIN, address(this));
        vm.expectRevert(refusal);
        managed.renounceRole(ADMIN, address(this));
    }

    function test_OtherRolesAreGrantedAndRevokedByTheAdmin() public {
        bytes32 role = managed.OPERATOR_ROLE();
        managed.grantRole(role, next);
        assertTrue(managed.hasRole(role, next));
        managed.revokeRole(role, next);
        assertFalse(managed.hasRole(role, next));
    }

    /// @dev How a deployment hands over: the timelock accepts in an operation of its own.
    function test_ATimelockAcceptsThroughAScheduledOperationAndThenActsAfterItsDelayOnly() public {
        address[] memory proposers = new address[](1);
        proposers[0] = address(this);
        Timelock timelock = new Timelock(2 days, proposers, new address[](1));
        managed.beginDefaultAdminTransfer(address(timelock));

        bytes memory accept = abi.encodeCall(managed.acceptDefaultAdminTransfer, ());
        timelock.schedule(address(managed), 0, accept, 0, 0, 2 days);
        vm.expectRevert();
        timelock.execute(address(managed), 0, accept, 0, 0);
        skip(2 days);
        vm.prank(stranger);
        timelock.execute(address(managed), 0, accept, 0, 0);
        assertEq(managed.defaultAdmin(), address(timelock));
        assertFalse(timelock.hasRole(timelock.DEFAULT_ADMIN_ROLE(), address(this)), "nobody administers the timelock");
    }
}
