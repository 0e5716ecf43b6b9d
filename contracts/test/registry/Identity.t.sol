// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {AgentRegistry} from "../../src/AgentRegistry.sol";
import {SmartAccount} from "../../src/embedded/SmartAccount.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {RegistryFixture} from "./RegistryFixture.sol";

/// @dev `signer` owns the agents here, since it can sign.
contract IdentityTest is RegistryFixture {
    uint256 private agentId;
    uint256 private identity;

    function setUp() public override {
        super.setUp();
        agentId = _agentOf(signer);
        identity = _identityOf(signer);
    }

    function test_KnowsTheIdentityRegistryAndItsChain() public view {
        assertEq(registry.erc8004IdentityRegistry(), address(identities));
        assertEq(registry.erc8004ChainId(), block.chainid);
    }

    function test_TheOwnerLinksAnIdentityItHolds() public {
        vm.expectEmit(address(registry));
        emit IAgentRegistry.ERC8004IdentityLinked(agentId, address(identities), block.chainid, identity, signer);
        vm.prank(signer);
        registry.linkERC8004Identity(agentId, identity);
        _assertLinked(agentId, identity);
        assertEq(registry.getAgentByERC8004(identity).owner, signer);
    }

    function test_TheRegistrarLinksForTheOwner() public {
        vm.prank(registrar);
        registry.linkERC8004Identity(agentId, identity);
        _assertLinked(agentId, identity);
    }

    function test_NobodyElseLinks() public {
        vm.prank(stranger);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.NotAgentOwner.selector, agentId, stranger));
        registry.linkERC8004Identity(agentId, identity);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.AgentNotFound.selector, 99));
        vm.prank(registrar);
        registry.linkERC8004Identity(99, identity);
    }

    function test_TheOwnerMustHoldTheToken() public {
        uint256 foreign = _identityOf(stranger);
        vm.startPrank(signer);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.ERC8004OwnerMismatch.selector, foreign, signer, stranger));
        registry.linkERC8004Identity(agentId, foreign);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.ERC8004IdentityNotFound.selector, 77));
        registry.linkERC8004Identity(agentId, 77);

        vm.startPrank(registrar);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.ERC8004OwnerMismatch.selector, foreign, signer, stranger));
        registry.linkERC8004Identity(agentId, foreign);
    }

    function test_ALinkIsMadeOnce() public {
        uint256 second = _identityOf(signer);
        uint256 other = _agentOf(signer);
        vm.startPrank(signer);
        registry.linkERC8004Identity(agentId, identity);

        bytes memory refusal = abi.encodeWithSelector(IAgentRegistry.ERC8004AlreadyLinked.selector, identity, agentId);
        vm.expectRevert(refusal);
        registry.linkERC8004Identity(agentId, identity);
        vm.expectRevert(refusal);
        registry.linkERC8004Identity(agentId, second);
        vm.expectRevert(refusal);
        registry.linkERC8004Identity(other, identity);

        registry.linkERC8004Identity(other, second);
        _assertLinked(agentId, identity);
        _assertLinked(other, second);
    }

    function test_ALinkLivesWhileTheOwnerHoldsTheToken() public {
        vm.startPrank(signer);
        registry.linkERC8004Identity(agentId, identity);
        identities.transferFrom(signer, stranger, identity);
        assertFalse(registry.isERC8004OwnerCurrent(agentId));
        assertTrue(registry.hasERC8004Identity(agentId), "the link itself stays");

        vm.startPrank(stranger);
        identities.transferFrom(stranger, signer, identity);
        assertTrue(registry.isERC8004OwnerCurrent(agentId));
    }

    function test_ALinkDiesWithTheAgentsOwnershipAndComesBackWithTheToken() public {
        vm.startPrank(signer);
        registry.linkERC8004Identity(agentId, identity);
        registry.transferAgentOwnership(agentId, stranger);
        assertFalse(registry.isERC8004OwnerCurrent(agentId));
        identities.transferFrom(signer, stranger, identity);
        assertTrue(registry.isERC8004OwnerCurrent(agentId));
    }

    function test_ATransferOfTheTokenEndsNoOrdersAndATransferOfTheAgentEndsAll() public {
        vm.startPrank(signer);
        registry.linkERC8004Identity(agentId, identity);
        identities.transferFrom(signer, stranger, identity);
        (, uint256 buyEpoch, uint256 saleEpoch) = registry.orderContextOf(agentId);
        assertEq(buyEpoch + saleEpoch, 0);
        registry.transferAgentOwnership(agentId, stranger);
        (, buyEpoch, saleEpoch) = registry.orderContextOf(agentId);
        assertEq(buyEpoch, 1);
        assertEq(saleEpoch, 1);
    }

    function test_ADeadLinkGivesWayToTheNewHoldersAgent() public {
        vm.startPrank(signer);
        registry.linkERC8004Identity(agentId, identity);
        identities.transferFrom(signer, stranger, identity);
        vm.stopPrank();
        uint256 other = _agentOf(stranger);

        vm.expectEmit(address(registry));
        emit IAgentRegistry.ERC8004IdentityUnlinked(agentId, identity);
        vm.prank(stranger);
        registry.linkERC8004Identity(other, identity);
        _assertLinked(other, identity);
        assertFalse(registry.hasERC8004Identity(agentId));
        assertEq(registry.getAgent(agentId).erc8004AgentId, 0);

        // The first owner gets the token back: the old link does not come to life again.
        vm.prank(stranger);
        identities.transferFrom(stranger, signer, identity);
        assertFalse(registry.isERC8004OwnerCurrent(agentId));
        assertFalse(registry.isERC8004OwnerCurrent(other));
        assertEq(registry.agentIdByERC8004(identity), other);
    }

    function test_AnAgentReplacesItsDeadLink() public {
        uint256 second = _identityOf(signer);
        vm.startPrank(signer);
        registry.linkERC8004Identity(agentId, identity);
        identities.transferFrom(signer, stranger, identity);

        vm.expectEmit(address(registry));
        emit IAgentRegistry.ERC8004IdentityUnlinked(agentId, identity);
        registry.linkERC8004Identity(agentId, second);
        _assertLinked(agentId, second);
        assertEq(registry.agentIdByERC8004(identity), 0);
    }

    function test_AnAgentWhoseLinkIsDeadMayTakeTheTokenOfAnotherDeadLink() public {
        uint256 other = _agentOf(stranger);
        uint256 second = _identityOf(stranger);
        vm.startPrank(signer);
        registry.linkERC8004Identity(agentId, identity);
        identities.transferFrom(signer, makeAddr("buyer"), identity);
        vm.startPrank(stranger);
        registry.linkERC8004Identity(other, second);
        identities.transferFrom(stranger, signer, second);

        vm.startPrank(signer);
        registry.linkERC8004Identity(agentId, second);
        _assertLinked(agentId, second);
        assertEq(registry.agentIdByERC8004(identity), 0);
        assertFalse(registry.hasERC8004Identity(other));
    }

    function test_TheOwnersSignatureLinks() public {
        bytes memory signature = _sign(SIGNER_KEY, registry.hashLinkERC8004(agentId, identity, 0, block.timestamp));
        vm.prank(relayer);
        registry.linkERC8004IdentityWithSignature(agentId, identity, block.timestamp, signature);
        _assertLinked(agentId, identity);
        assertEq(registry.nonces(signer), 1);

        vm.expectRevert(IAgentRegistry.InvalidSignature.selector);
        registry.linkERC8004IdentityWithSignature(agentId, identity, block.timestamp, signature);
    }

    function test_TheSignatureIsTheOwnersNotTheSigners() public {
        uint256 other = _agentOf(stranger);
        bytes memory signature = _sign(SIGNER_KEY, registry.hashLinkERC8004(other, identity, 0, block.timestamp));
        vm.expectRevert(IAgentRegistry.InvalidSignature.selector);
        registry.linkERC8004IdentityWithSignature(other, identity, block.timestamp, signature);
    }

    function test_AnOwnerThatIsAContractLinksThroughErc1271() public {
        SmartAccount account = new SmartAccount(signer);
        uint256 other = _agentOf(address(account));
        vm.prank(signer);
        account.execute(address(identities), 0, abi.encodeWithSignature("register()"));
        bytes memory signature = _sign(SIGNER_KEY, registry.hashLinkERC8004(other, identity + 1, 0, block.timestamp));
        registry.linkERC8004IdentityWithSignature(other, identity + 1, block.timestamp, signature);
        _assertLinked(other, identity + 1);
    }

    function testFuzz_RefusesASignatureByAnotherKeyOrOverOtherValues(uint256 key, uint8 field) public {
        key = bound(key, 1, type(uint128).max);
        vm.assume(key != SIGNER_KEY);
        bytes32 digest = registry.hashLinkERC8004(agentId, identity, 0, block.timestamp);
        bytes memory foreign = _sign(key, digest);
        vm.expectRevert(IAgentRegistry.InvalidSignature.selector);
        registry.linkERC8004IdentityWithSignature(agentId, identity, block.timestamp, foreign);

        field = uint8(bound(field, 0, 3));
        digest = registry.hashLinkERC8004(
            field == 0 ? agentId + 1 : agentId,
            field == 1 ? identity + 1 : identity,
            field == 2 ? 1 : 0,
            field == 3 ? block.timestamp + 1 : block.timestamp
        );
        bytes memory other = _sign(SIGNER_KEY, digest);
        vm.expectRevert(IAgentRegistry.InvalidSignature.selector);
        registry.linkERC8004IdentityWithSignature(agentId, identity, block.timestamp, other);
        assertEq(registry.nonces(signer), 0);
    }

    function test_ASignedLinkExpires() public {
        uint256 deadline = block.timestamp - 1;
        bytes memory signature = _sign(SIGNER_KEY, registry.hashLinkERC8004(agentId, identity, 0, deadline));
        vm.expectRevert(IAgentRegistry.ExpiredDeadline.selector);
        registry.linkERC8004IdentityWithSignature(agentId, identity, deadline, signature);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.AgentNotFound.selector, 99));
        registry.linkERC8004IdentityWithSignature(99, identity, deadline, signature);
    }

    function test_ARefusedLinkLeavesTheNonce() public {
        bytes memory signature = _sign(SIGNER_KEY, registry.hashLinkERC8004(agentId, 77, 0, block.timestamp));
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.ERC8004IdentityNotFound.selector, 77));
        registry.linkERC8004IdentityWithSignature(agentId, 77, block.timestamp, signature);
        assertEq(registry.nonces(signer), 0);
    }

    function test_LinkingGoesOnWhileTheRegistryIsPaused() public {
        vm.prank(operator);
        registry.pause();
        vm.prank(signer);
        registry.linkERC8004Identity(agentId, identity);
        _assertLinked(agentId, identity);
    }

    function test_AnIdentityWithoutAnAgentIsLinkedToNone() public {
        assertEq(registry.agentIdByERC8004(identity), 0);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.ERC8004IdentityNotLinked.selector, identity));
        registry.getAgentByERC8004(identity);
        assertFalse(registry.isERC8004OwnerCurrent(agentId));
    }

    function test_WithoutAnIdentityRegistryNothingIsLinked() public {
        registry = new AgentRegistry(address(this), address(tracks), address(allocations), address(fees), address(0));
        registry.grantRole(registry.REGISTRAR_ROLE(), registrar);
        fees.setAgentRegistry(address(registry));
        vm.startPrank(registrar);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.ERC8004IdentityNotFound.selector, identity));
        registry.registerAgent(signer, vault, NAME, URI, signer, true, identity);
    }

    function _assertLinked(uint256 agent, uint256 erc8004AgentId) private view {
        assertTrue(registry.hasERC8004Identity(agent));
        assertEq(registry.getAgent(agent).erc8004AgentId, erc8004AgentId);
        assertEq(registry.agentIdByERC8004(erc8004AgentId), agent);
        assertTrue(registry.isERC8004OwnerCurrent(agent));
    }
}
