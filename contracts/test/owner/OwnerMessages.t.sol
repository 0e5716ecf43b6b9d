// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Nonces} from "@openzeppelin/contracts/utils/Nonces.sol";
import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {OwnerControls} from "../../src/OwnerControls.sol";
import {SmartAccount} from "../../src/embedded/SmartAccount.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IOwnerControls} from "../../src/interfaces/IOwnerControls.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {OwnerTest} from "./OwnerTest.sol";

contract OwnerMessagesTest is OwnerTest {
    bytes private invalid = abi.encodeWithSelector(IOwnerControls.InvalidSignature.selector);

    function test_TheDomainIsItsOwn() public view {
        (bytes1 fields, string memory name, string memory version, uint256 chainId, address verifier,,) =
            controls.eip712Domain();
        assertEq(fields, hex"0f");
        assertEq(name, "Service OwnerControls");
        assertEq(version, "1");
        assertEq(chainId, block.chainid);
        assertEq(verifier, address(controls));
        assertEq(controls.agentRegistry(), address(agents));
        assertEq(controls.tradeRouter(), address(router));
    }

    // What every message has in common

    function test_AnybodyRelaysEachMessage() public {
        for (uint256 kind; kind <= uint256(type(Message).max); ++kind) {
            uint256 nonce = _nonce();
            _relay(_callOf(Message(kind), nonce, _soon(), ownerKey));
            assertEq(_nonce(), nonce + 1);
        }
    }

    function test_NoMessageIsExecutedTwice() public {
        for (uint256 kind; kind <= uint256(type(Message).max); ++kind) {
            bytes memory call = _callOf(Message(kind), _nonce(), _soon(), ownerKey);
            _relay(call);
            if (_isStop(Message(kind))) continue;
            _refuseMessage(
                call, abi.encodeWithSelector(Nonces.InvalidAccountNonce.selector, owner, controls.nonces(owner))
            );
        }
    }

    function test_NobodyElseSignsAMessage() public {
        for (uint256 kind; kind <= uint256(type(Message).max); ++kind) {
            uint256 until = _soon();
            _refuseMessage(_callOf(Message(kind), 0, until, newOwnerKey), invalid);
            _refuseMessage(_callOf(Message(kind), 0, until, signerKey), invalid);
        }
        assertEq(controls.nonces(owner), 0);
    }

    function test_AMessageExpires() public {
        for (uint256 kind; kind <= uint256(type(Message).max); ++kind) {
            _refuseMessage(
                _callOf(Message(kind), 0, block.timestamp - 1, ownerKey),
                abi.encodeWithSelector(IOwnerControls.ExpiredDeadline.selector)
            );
            uint256 snapshot = vm.snapshotState();
            _relay(_callOf(Message(kind), 0, block.timestamp, ownerKey));
            vm.revertToState(snapshot);
        }
    }

    function test_AMessageCarriesTheOwnersNextNonce() public {
        for (uint256 kind; kind <= uint256(type(Message).max); ++kind) {
            if (_isStop(Message(kind))) continue;
            _refuseMessage(
                _callOf(Message(kind), 1, _soon(), ownerKey),
                abi.encodeWithSelector(Nonces.InvalidAccountNonce.selector, owner, 0)
            );
        }
    }

    function test_AnOwnerWithCodeSigns() public {
        SmartAccount safe = new SmartAccount(vm.addr(0x5AFE));
        vm.prank(owner);
        agents.transferAgentOwnership(agentId, address(safe));
        for (uint256 kind; kind <= uint256(type(Message).max); ++kind) {
            _refuseMessage(_callOf(Message(kind), kind, _soon(), ownerKey), invalid);
            _relay(_callOf(Message(kind), kind, _soon(), 0x5AFE));
        }
        assertEq(controls.nonces(address(safe)), 6);
    }

    /// @dev For a contract that cannot sign, and for a person whose relayer is gone.
    function test_AnOwnerThatCallsItselfNeedsNoSignature() public {
        vm.startPrank(owner);
        controls.stopBuying(_only(agentId), 0, block.timestamp, "");
        assertEq(controls.mandateOf(agentId).mode, REDUCE_ONLY);
        controls.setSigner(agentId, vm.addr(newSignerKey), 0, block.timestamp, "");
        vm.stopPrank();
        vm.prank(vm.addr(signerKey));
        vm.expectRevert(IOwnerControls.InvalidSignature.selector);
        controls.stopBuying(_only(agentId), 1, block.timestamp, "");
    }

    function test_AnUnknownAgentIsRefused() public {
        agentId = 9;
        bytes memory refusal = abi.encodeWithSelector(IAgentRegistry.AgentNotFound.selector, 9);
        for (uint256 kind; kind <= uint256(type(Message).max); ++kind) {
            _refuseMessage(_callOf(Message(kind), 0, _soon(), ownerKey), refusal);
        }
    }

    // Ownership

    function test_OwnershipTakesTwoSignatures() public {
        vm.expectEmit(address(controls));
        emit IOwnerControls.OwnershipOffered(agentId, owner, newOwner);
        _relay(_offerCall(newOwner, 0, _soon(), ownerKey));
        assertEq(controls.pendingOwnerOf(agentId), newOwner);
        assertEq(agents.ownerOf(agentId), owner);

        address newSigner = vm.addr(newSignerKey);
        vm.expectEmit(address(agents));
        emit IAgentRegistry.AgentOwnershipTransferred(agentId, owner, newOwner);
        vm.expectEmit(address(agents));
        emit IAgentRegistry.PayoutRecipientUpdated(agentId, newOwner);
        vm.expectEmit(address(agents));
        emit IAgentRegistry.AgentSignerUpdated(agentId, newSigner);
        _relay(_acceptCall(newSigner, 0, _soon(), newOwnerKey));
        assertEq(agents.ownerOf(agentId), newOwner);
        assertEq(agents.payoutRecipientOf(agentId), newOwner);
        assertEq(agents.signerOf(agentId), newSigner);
        assertEq(controls.pendingOwnerOf(agentId), address(0));
        assertEq(controls.nonces(owner), 1);
        assertEq(controls.nonces(newOwner), 1);
    }

    function test_TheFormerOwnerAndSignerAreRefusedFromTheNextTransactionOn() public {
        ITradeRouter.PositionIntent memory intent = _openIntent(nvda, 1_000 * USDC);
        bytes memory stop = _callOf(Message.StopBuying, 1, _soon(), ownerKey);
        _relay(_offerCall(newOwner, 0, _soon(), ownerKey));
        _relay(_acceptCall(vm.addr(newSignerKey), 0, _soon(), newOwnerKey));

        _refuse(intent, abi.encodeWithSelector(ITradeRouter.InvalidSignature.selector));
        _refuseMessage(stop, invalid);
        signerKey = newSignerKey;
        _submit(intent);
    }

    function test_OnlyWhoIsNamedAccepts() public {
        _refuseMessage(
            _acceptCall(vm.addr(newSignerKey), 0, _soon(), newOwnerKey),
            abi.encodeWithSelector(IOwnerControls.NoOwnershipOffer.selector, agentId)
        );
        _relay(_offerCall(newOwner, 0, _soon(), ownerKey));
        _refuseMessage(_acceptCall(vm.addr(newSignerKey), 0, _soon(), signerKey), invalid);
        _refuseMessage(_acceptCall(vm.addr(newSignerKey), 0, _soon(), ownerKey), invalid);
        _refuseMessage(
            _acceptCall(vm.addr(newSignerKey), 1, _soon(), newOwnerKey),
            abi.encodeWithSelector(Nonces.InvalidAccountNonce.selector, newOwner, 0)
        );
        _refuseMessage(
            _acceptCall(vm.addr(newSignerKey), 0, block.timestamp - 1, newOwnerKey),
            abi.encodeWithSelector(IOwnerControls.ExpiredDeadline.selector)
        );
        _refuseMessage(
            _acceptCall(address(0), 0, _soon(), newOwnerKey),
            abi.encodeWithSelector(IAgentRegistry.ZeroAddress.selector)
        );
        assertEq(agents.ownerOf(agentId), owner);
        bytes memory accept = _acceptCall(vm.addr(newSignerKey), 0, _soon(), newOwnerKey);
        _relay(accept);
        _refuseMessage(accept, abi.encodeWithSelector(IOwnerControls.NoOwnershipOffer.selector, agentId));
    }

    function test_AnOfferIsWithdrawnOrReplaced() public {
        bytes memory accept = _acceptCall(vm.addr(newSignerKey), 0, _soon(), newOwnerKey);
        _relay(_offerCall(newOwner, 0, _soon(), ownerKey));
        _relay(_offerCall(address(0), 1, _soon(), ownerKey));
        bytes memory refusal = abi.encodeWithSelector(IOwnerControls.NoOwnershipOffer.selector, agentId);
        _refuseMessage(accept, refusal);
        _relay(_offerCall(newOwner, 2, _soon(), ownerKey));
        _relay(_offerCall(makeAddr("another"), 3, _soon(), ownerKey));
        _refuseMessage(accept, invalid);
    }

    /// @dev The registry's own transfer leaves no offer of the former owner behind.
    function test_AnOfferEndsWithTheOwnershipOfWhoMadeIt() public {
        _relay(_offerCall(newOwner, 0, _soon(), ownerKey));
        vm.prank(owner);
        agents.transferAgentOwnership(agentId, makeAddr("another"));
        assertEq(controls.pendingOwnerOf(agentId), address(0));
        _refuseMessage(
            _acceptCall(vm.addr(newSignerKey), 0, _soon(), newOwnerKey),
            abi.encodeWithSelector(IOwnerControls.NoOwnershipOffer.selector, agentId)
        );
    }

    /// @dev An offer that was forgotten before a sale must not wait for the agent's return.
    function test_AnOfferStaysEndedWhenTheAgentComesBack() public {
        address buyer = makeAddr("buyer");
        _relay(_offerCall(newOwner, 0, _soon(), ownerKey));
        vm.prank(owner);
        agents.transferAgentOwnership(agentId, buyer);
        vm.prank(buyer);
        agents.transferAgentOwnership(agentId, owner);
        assertEq(agents.transferCountOf(agentId), 2);
        assertEq(controls.pendingOwnerOf(agentId), address(0));
        _refuseMessage(
            _acceptCall(vm.addr(newSignerKey), 0, _soon(), newOwnerKey),
            abi.encodeWithSelector(IOwnerControls.NoOwnershipOffer.selector, agentId)
        );
        _relay(_offerCall(newOwner, 1, _soon(), ownerKey));
        _relay(_acceptCall(vm.addr(newSignerKey), 0, _soon(), newOwnerKey));
        assertEq(agents.ownerOf(agentId), newOwner);
    }

    function test_AMandateOutlivesATransferUntilTheNewOwnerSetsAnother() public {
        _setMandate(_mandate(STOPPED));
        _relay(_offerCall(newOwner, 1, _soon(), ownerKey));
        _relay(_acceptCall(vm.addr(newSignerKey), 0, _soon(), newOwnerKey));
        assertEq(controls.mandateOf(agentId).mode, STOPPED);
        ownerKey = newOwnerKey;
        _setMandate(_mandate(TRADE));
        assertEq(controls.mandateOf(agentId).mode, TRADE);
    }

    // Signer

    function test_TheFormerSignersIntentsAreVoid() public {
        ITradeRouter.PositionIntent memory intent = _openIntent(nvda, 1_000 * USDC);
        _setSigner(newSignerKey);
        _refuse(intent, abi.encodeWithSelector(ITradeRouter.InvalidSignature.selector));
        signerKey = newSignerKey;
        _submit(intent);
    }

    // Lists

    function test_OneSignatureStopsAllAgentsOfAnOwner() public {
        uint256[] memory ids = new uint256[](20);
        ids[0] = agentId;
        for (uint256 i = 1; i < ids.length; ++i) {
            ids[i] = _register(vm.addr(0x1000 + i));
        }
        _relay(_stopCall(ids, ownerKey));
        for (uint256 i; i < ids.length; ++i) {
            assertEq(controls.mandateOf(ids[i]).mode, REDUCE_ONLY);
        }
        assertEq(controls.nonces(owner), 1);
        vm.expectEmit(address(controls));
        emit IOwnerControls.CloseAllStarted(ids[19], owner, REDUCE_ONLY, block.timestamp);
        _relay(_closeCall(ids, ownerKey));
        for (uint256 i; i < ids.length; ++i) {
            assertEq(controls.mandateOf(ids[i]).closingSince, block.timestamp);
        }
    }

    function test_AListNamesAnAgent() public {
        _refuseMessage(_closeCall(new uint256[](0), ownerKey), abi.encodeWithSelector(IOwnerControls.NoAgents.selector));
    }

    function _isStop(Message kind) private pure returns (bool) {
        return kind == Message.StopBuying || kind == Message.CloseAll;
    }

    // Cancel

    function test_ACancelVoidsWhatTheSignerSigned() public {
        ITradeRouter.PositionIntent memory first = _openIntent(nvda, 1_000 * USDC);
        ITradeRouter.PositionIntent memory second = _openIntent(tsla, 1_000 * USDC);
        second.nonce = 1;
        vm.expectEmit(address(router));
        emit ITradeRouter.NonceCancelled(agentId, 0, address(controls));
        vm.expectEmit(address(router));
        emit ITradeRouter.NonceCancelled(agentId, 1, address(controls));
        vm.expectEmit(address(controls));
        emit IOwnerControls.IntentsCancelled(agentId, owner, 0, 2);
        _cancelIntents(2);
        assertEq(router.nonces(agentId), 2);
        _refuse(first, abi.encodeWithSelector(ITradeRouter.InvalidNonce.selector, 2, 0));
        _refuse(second, abi.encodeWithSelector(ITradeRouter.InvalidNonce.selector, 2, 1));
        _open(nvda, 1_000 * USDC);
    }

    function test_ACancelMovesTheNonceOnByABoundedNumber() public {
        bytes4 selector = IOwnerControls.InvalidCancellation.selector;
        _refuseMessage(_cancelCall(0, 0, _soon(), ownerKey), abi.encodeWithSelector(selector, agentId, 0, 0));
        _refuseMessage(_cancelCall(65, 0, _soon(), ownerKey), abi.encodeWithSelector(selector, agentId, 0, 65));
        _cancelIntents(64);
        assertEq(router.nonces(agentId), 64);
    }

    // Who may call what

    function test_OnlyTheControlsWriteAMandateToTheRegistry() public {
        bytes memory refusal = abi.encodeWithSelector(IAgentRegistry.OnlyOwnerControls.selector, owner);
        vm.startPrank(owner);
        vm.expectRevert(refusal);
        agents.setMandateState(agentId, 1);
        vm.expectRevert(abi.encodeWithSelector(IOwnerControls.OnlyAgentRegistry.selector, owner));
        IAgentRegistry.Registration memory registration;
        controls.useConsent(registration, IAgentRegistry.OwnerConsent(0, 0, ""));
    }

    function test_OnlyTheAdminReplacesTheControls() public {
        bytes memory refusal = abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, address(this), agents.DEFAULT_ADMIN_ROLE()
        );
        vm.expectRevert(refusal);
        agents.setOwnerControls(address(1));
        vm.startPrank(admin);
        vm.expectRevert(IAgentRegistry.ZeroAddress.selector);
        agents.setOwnerControls(address(0));
        vm.expectEmit(address(agents));
        emit IAgentRegistry.OwnerControlsUpdated(address(controls), address(1));
        agents.setOwnerControls(address(1));
        vm.expectRevert(IOwnerControls.ZeroAddress.selector);
        new OwnerControls(address(0));
    }

    /// @dev Fails closed: limits that the new contract does not know are not forgotten.
    function test_ReplacedControlsStopMandatesWithLimitsUntilTheyAreSignedAgain() public {
        IOwnerControls.Mandate memory mandate = _mandate(TRADE);
        mandate.maxTradeUsdc = 1_000 * USDC;
        _setMandate(mandate);
        controls = new OwnerControls(address(agents));
        vm.prank(admin);
        agents.setOwnerControls(address(controls));
        _refuse(
            _openIntent(nvda, 1_000 * USDC), abi.encodeWithSelector(IOwnerControls.MandateNotFound.selector, agentId)
        );
        _setMandate(mandate);
        _open(nvda, 1_000 * USDC);
    }
}
