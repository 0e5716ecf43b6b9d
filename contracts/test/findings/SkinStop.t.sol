// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {SmartAccount} from "../../src/embedded/SmartAccount.sol";
import {IOwnerControls} from "../../src/interfaces/IOwnerControls.sol";
import {OwnerTest} from "../owner/OwnerTest.sol";

/// @notice Accepts every signature, or burns all gas it gets
contract HostileOwner is IERC1271 {
    bool private immutable _burns;

    constructor(bool burns) {
        _burns = burns;
    }

    function isValidSignature(bytes32, bytes calldata) external view returns (bytes4) {
        while (_burns) {}
        return IERC1271.isValidSignature.selector;
    }
}

/// @notice An owner's stop always takes effect in the block that mines it; every test failed before the fix
contract SkinStopTest is OwnerTest {
    uint256 private other;

    function setUp() public override {
        super.setUp();
        other = _register(vm.addr(0x1000));
    }

    function test_Skin08_AStopTakesEffectAfterAnOlderMessageWithTheSameNonce() public {
        bytes memory older = _mandateCall(_mandate(TRADE), 0, _soon(), ownerKey);
        bytes memory stop = _callOf(Message.StopBuying, 0, _soon(), ownerKey);
        _relay(older);
        _relay(stop);
        assertEq(controls.mandateOf(agentId).mode, REDUCE_ONLY);
    }

    function test_Skin08_AStopVoidsAnOlderMessageWithTheSameNonce() public {
        bytes memory older = _mandateCall(_mandate(TRADE), 0, _soon(), ownerKey);
        _relay(_callOf(Message.CloseAll, 0, _soon(), ownerKey));
        (bool success,) = address(controls).call(older);
        assertFalse(success);
        assertEq(controls.mandateOf(agentId).mode, REDUCE_ONLY);
    }

    function test_Skin08_AStopWorksOnce() public {
        bytes memory stop = _callOf(Message.StopBuying, 0, _soon(), ownerKey);
        _relay(stop);
        _setMandate(_mandate(TRADE));
        vm.prank(relayer);
        (bool success, bytes memory reason) = address(controls).call(stop);
        assertFalse(success);
        assertEq(bytes4(reason), IOwnerControls.MessageAlreadyUsed.selector);
        assertEq(controls.mandateOf(agentId).mode, TRADE);
    }

    function test_Skin08_AStopWorksOnceHoweverManyFollowIt() public {
        bytes memory first = _callOf(Message.StopBuying, 0, _soon(), ownerKey);
        bytes memory late = _callOf(Message.StopBuying, 0, _soon() + 1, ownerKey);
        _setMandate(_mandate(TRADE));
        _relay(first); // late: its nonce is used
        for (uint256 i; i < 5; ++i) {
            _setMandate(_mandate(TRADE));
            _stopBuying();
        }
        _setMandate(_mandate(TRADE));
        bytes[2] memory stops = [first, late];
        for (uint256 i; i < 2; ++i) {
            vm.prank(relayer);
            (bool success, bytes memory reason) = address(controls).call(stops[i]);
            assertFalse(success);
            assertEq(bytes4(reason), IOwnerControls.MessageAlreadyUsed.selector);
        }
        assertEq(controls.mandateOf(agentId).mode, TRADE);
    }

    function test_Skin08_AStopTakesEffectAfterOlderMessagesAndThreeOtherStops() public {
        for (uint256 i; i < 4; ++i) {
            _stopBuying();
        }
        bytes memory stop = _callOf(Message.CloseAll, _nonce(), _soon(), ownerKey);
        for (uint256 i; i < 3; ++i) {
            _setMandate(_mandate(TRADE));
            _relay(_callOf(Message.StopBuying, _nonce(), _soon() + i, ownerKey));
        }
        _setMandate(_mandate(TRADE));
        _relay(stop);
        assertEq(controls.mandateOf(agentId).closingSince, block.timestamp);
    }

    function test_Skin08_StopsWithOneNonceAllTakeEffect() public {
        bytes memory close = _callOf(Message.CloseAll, 0, _soon(), ownerKey);
        _relay(_callOf(Message.StopBuying, 0, _soon(), ownerKey));
        _relay(_callOf(Message.StopBuying, 0, _soon() + 1, ownerKey));
        _relay(close);
        assertEq(controls.mandateOf(agentId).closingSince, block.timestamp);
        assertEq(controls.nonces(owner), 1);
    }

    function test_Skin08_AStopVoidsEveryOlderMessageUpToItsNonce() public {
        bytes memory older = _mandateCall(_mandate(TRADE), 0, _soon(), ownerKey);
        bytes memory same = _mandateCall(_mandate(TRADE), 3, _soon(), ownerKey);
        _relay(_callOf(Message.StopBuying, 3, _soon(), ownerKey));
        assertEq(controls.nonces(owner), 4);
        bytes[2] memory voided = [older, same];
        for (uint256 i; i < 2; ++i) {
            (bool success,) = address(controls).call(voided[i]);
            assertFalse(success);
        }
        assertEq(controls.mandateOf(agentId).mode, REDUCE_ONLY);
    }

    /// @dev A nonce far ahead would leave the owner none.
    function test_Skin08_AStopUsesUpAtMost64NoncesAhead() public {
        bytes memory far = _callOf(Message.StopBuying, 65, _soon(), ownerKey);
        vm.prank(relayer);
        (bool success,) = address(controls).call(far);
        assertFalse(success);
        _relay(_callOf(Message.StopBuying, 64, _soon(), ownerKey));
        assertEq(controls.nonces(owner), 65);
    }

    function test_Skin08_AnOwnersOwnCallUsesWhateverNonceIsNext() public {
        vm.startPrank(owner);
        controls.stopBuying(_only(agentId), 0, block.timestamp, "");
        controls.setMandate(agentId, _mandate(TRADE), 77, block.timestamp, "");
        controls.closeAll(_only(agentId), 0, block.timestamp, "");
        vm.stopPrank();
        assertEq(controls.nonces(owner), 3);
        assertEq(controls.mandateOf(agentId).closingSince, block.timestamp);
    }

    /// @dev Who watches the owner submit its own signed message does not submit it again later.
    function test_Skin08_AMessageThatItsOwnerSubmittedWorksOnceToo() public {
        bytes memory stop = _callOf(Message.StopBuying, 0, _soon(), ownerKey);
        vm.prank(owner);
        (bool success,) = address(controls).call(stop);
        assertTrue(success);
        vm.prank(relayer);
        (success,) = address(controls).call(stop);
        assertFalse(success);
    }

    function test_Skin08_AnAgentThatLeftIsSkippedWhereverItStands() public {
        uint256[] memory ids = new uint256[](3);
        (ids[0], ids[1], ids[2]) = (agentId, other, _register(vm.addr(0x1001)));
        for (uint256 left; left < 3; ++left) {
            uint256 snapshot = vm.snapshotState();
            bytes memory stop = _stopCall(ids, ownerKey);
            vm.prank(owner);
            agents.transferAgentOwnership(ids[left], newOwner);
            vm.expectEmit(address(controls));
            emit IOwnerControls.AgentSkipped(ids[left], newOwner);
            _relay(stop);
            for (uint256 i; i < 3; ++i) {
                assertEq(controls.mandateOf(ids[i]).mode, i == left ? TRADE : REDUCE_ONLY);
            }
            vm.revertToState(snapshot);
        }
    }

    /// @dev A contract that bought one of the agents neither uses up the message nor its gas.
    function test_Skin08_AContractThatOwnsAnAgentVoidsNoMessageOfAnother() public {
        uint256[] memory ids = new uint256[](2);
        (ids[0], ids[1]) = (other, agentId);
        for (uint256 i; i < 2; ++i) {
            uint256 snapshot = vm.snapshotState();
            bytes memory stop = _stopCall(ids, ownerKey);
            address hostile = address(new HostileOwner(i == 1));
            vm.prank(owner);
            agents.transferAgentOwnership(other, hostile);
            (uint256 nonce, uint256 until) = (_nonce(), _soon());
            if (i == 0) controls.stopBuying(ids, nonce, until, hex"00");
            assertEq(controls.mandateOf(agentId).mode, TRADE);
            vm.prank(relayer);
            (bool success,) = address(controls).call{gas: 1_500_000}(stop);
            assertTrue(success);
            assertEq(controls.mandateOf(agentId).mode, REDUCE_ONLY);
            vm.revertToState(snapshot);
        }
    }

    function test_Skin08_AnOwnerWithCodeStopsAfterAnAgentHasLeft() public {
        SmartAccount safe = new SmartAccount(vm.addr(0x5AFE));
        vm.startPrank(owner);
        agents.transferAgentOwnership(agentId, address(safe));
        vm.stopPrank();
        uint256[] memory ids = new uint256[](2);
        (ids[0], ids[1]) = (other, agentId);
        _relay(_closeCall(ids, 0x5AFE));
        assertEq(controls.mandateOf(agentId).closingSince, block.timestamp);
        assertEq(controls.mandateOf(other).closingSince, 0);
    }
}
