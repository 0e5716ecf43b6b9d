// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Nonces} from "@openzeppelin/contracts/utils/Nonces.sol";
import {SmartAccount} from "../../src/embedded/SmartAccount.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IOwnerControls} from "../../src/interfaces/IOwnerControls.sol";
import {OwnerTest} from "./OwnerTest.sol";

contract OwnedRegistrationTest is OwnerTest {
    function test_TheHotKeyNeverOwnsAnAgentThatIsRegisteredForAnOwner() public {
        IAgentRegistry.Registration memory registration = _registration();
        IAgentRegistry.OwnerConsent memory consent = _consentOf(registration, newOwnerKey);
        bytes memory signature = _signRegistration(registration, newSignerKey);
        vm.expectEmit(address(agents));
        emit IAgentRegistry.AgentRegistered(2, address(vault), newOwner, vm.addr(newSignerKey), "ipfs://agent", 0);
        vm.prank(relayer);
        assertEq(agents.registerOwnedAgent(registration, _soon(), signature, consent), 2);
        assertEq(agents.ownerOf(2), newOwner);
        assertEq(agents.payoutRecipientOf(2), newOwner);
        assertEq(agents.signerOf(2), vm.addr(newSignerKey));
        assertEq(agents.nonces(vm.addr(newSignerKey)), 1);
        assertEq(controls.nonces(newOwner), 1);

        vm.expectRevert(IAgentRegistry.InvalidSignature.selector);
        agents.registerOwnedAgent(registration, _soon(), signature, consent);
        signature = _signRegistration(registration, newSignerKey);
        vm.expectRevert(abi.encodeWithSelector(Nonces.InvalidAccountNonce.selector, newOwner, 1));
        agents.registerOwnedAgent(registration, _soon(), signature, consent);
    }

    function test_ARegistrationNeedsBothSignatures() public {
        IAgentRegistry.Registration memory registration = _registration();
        IAgentRegistry.OwnerConsent memory consent = _consentOf(registration, newOwnerKey);
        bytes memory signature = _signRegistration(registration, newSignerKey);
        bytes memory ownersOwn = _signRegistration(registration, newOwnerKey);
        vm.expectRevert(IAgentRegistry.InvalidSignature.selector);
        agents.registerOwnedAgent(registration, _soon(), ownersOwn, consent);
        vm.expectRevert(IAgentRegistry.ExpiredDeadline.selector);
        agents.registerOwnedAgent(registration, block.timestamp - 1, signature, consent);

        IAgentRegistry.OwnerConsent memory signers = _consentOf(registration, newSignerKey);
        vm.expectRevert(IOwnerControls.InvalidSignature.selector);
        agents.registerOwnedAgent(registration, _soon(), signature, signers);
        consent.deadline = block.timestamp - 1;
        vm.expectRevert(IOwnerControls.ExpiredDeadline.selector);
        agents.registerOwnedAgent(registration, _soon(), signature, consent);

        // The owner agreed to another vault, name and signer.
        consent = _consentOf(registration, newOwnerKey);
        registration.name = "Reversal";
        signature = _signRegistration(registration, newSignerKey);
        vm.expectRevert(IOwnerControls.InvalidSignature.selector);
        agents.registerOwnedAgent(registration, _soon(), signature, consent);
    }

    function test_ARegistrationForAnOwnerThatIsTheSignerIsRefused() public {
        IAgentRegistry.Registration memory registration = _registration();
        registration.owner = registration.signer;
        IAgentRegistry.OwnerConsent memory consent = _consentOf(registration, newSignerKey);
        bytes memory signature = _signRegistration(registration, newSignerKey);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.OwnerIsSigner.selector, registration.signer));
        agents.registerOwnedAgent(registration, _soon(), signature, consent);
    }

    function test_AnOwnerWithCodeConsents() public {
        IAgentRegistry.Registration memory registration = _registration();
        registration.owner = address(new SmartAccount(vm.addr(0x5AFE)));
        IAgentRegistry.OwnerConsent memory consent = _consentOf(registration, 0x5AFE);
        bytes memory signature = _signRegistration(registration, newSignerKey);
        agents.registerOwnedAgent(registration, _soon(), signature, consent);
        assertEq(agents.ownerOf(2), registration.owner);
    }

    function test_ARegistrationForAnOwnerWaitsForAPausedRegistry() public {
        IAgentRegistry.Registration memory registration = _registration();
        IAgentRegistry.OwnerConsent memory consent = _consentOf(registration, newOwnerKey);
        bytes memory signature = _signRegistration(registration, newSignerKey);
        _pauseRegistry();
        vm.expectRevert(abi.encodeWithSignature("EnforcedPause()"));
        agents.registerOwnedAgent(registration, _soon(), signature, consent);
    }

    function _registration() private view returns (IAgentRegistry.Registration memory) {
        return IAgentRegistry.Registration({
            owner: newOwner,
            vault: address(vault),
            name: "Momentum",
            metadataURI: "ipfs://agent",
            signer: vm.addr(newSignerKey),
            linkERC8004: false,
            erc8004AgentId: 0
        });
    }

    function _signRegistration(IAgentRegistry.Registration memory r, uint256 key) private view returns (bytes memory) {
        bytes32 digest = agents.hashSelfRegister(
            r.vault, r.name, r.metadataURI, r.signer, false, 0, agents.nonces(r.signer), _soon()
        );
        return _sign(key, digest);
    }
}
