// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "../../src/interfaces/IAllocationManager.sol";
import {IFeeManager} from "../../src/interfaces/IFeeManager.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {RegistryFixture} from "./RegistryFixture.sol";

contract AgentTest is RegistryFixture {
    uint8 private constant DRAFT = uint8(IAgentRegistry.AgentStatus.Draft);
    uint8 private constant ACTIVE = uint8(IAgentRegistry.AgentStatus.Active);
    uint8 private constant SUSPENDED = uint8(IAgentRegistry.AgentStatus.Suspended);
    uint8 private constant FAILED = uint8(IAgentRegistry.AgentStatus.Failed);
    uint8 private constant GRADUATED = uint8(IAgentRegistry.AgentStatus.Graduated);
    uint8 private constant EXITED = uint8(IAgentRegistry.AgentStatus.Exited);

    uint256 private agentId;
    address private owner = makeAddr("owner");

    function setUp() public override {
        super.setUp();
        agentId = _agentOf(owner);
    }

    function test_TheOwnerReplacesTheMetadata() public {
        vm.startPrank(owner);
        vm.expectEmit(address(registry));
        emit IAgentRegistry.AgentMetadataUpdated(agentId, "ipfs://second");
        registry.updateAgentMetadata(agentId, "ipfs://second");
        assertEq(registry.getAgent(agentId).metadataURI, "ipfs://second");

        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.InvalidMetadataURI.selector, 0));
        registry.updateAgentMetadata(agentId, "");
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.InvalidMetadataURI.selector, 2049));
        registry.updateAgentMetadata(agentId, string(new bytes(2049)));
        registry.updateAgentMetadata(agentId, string(new bytes(2048)));
    }

    function test_TheOwnerReplacesTheSigner() public {
        vm.startPrank(owner);
        vm.expectEmit(address(registry));
        emit IAgentRegistry.AgentSignerUpdated(agentId, stranger);
        registry.setAgentSigner(agentId, stranger);
        assertEq(registry.signerOf(agentId), stranger);
        (address tradeSigner,,,,,) = registry.tradeContextOf(agentId);
        assertEq(tradeSigner, stranger);

        vm.expectRevert(IAgentRegistry.ZeroAddress.selector);
        registry.setAgentSigner(agentId, address(0));
    }

    function test_TheOwnerSendsPayoutsElsewhere() public {
        vm.startPrank(owner);
        vm.expectEmit(address(registry));
        emit IAgentRegistry.PayoutRecipientUpdated(agentId, treasury);
        registry.setPayoutRecipient(agentId, treasury);
        assertEq(registry.payoutRecipientOf(agentId), treasury);

        vm.expectRevert(IAgentRegistry.ZeroAddress.selector);
        registry.setPayoutRecipient(agentId, address(0));
    }

    function test_TheOwnerGivesTheAgentAwayWithItsPayouts() public {
        vm.startPrank(owner);
        registry.setPayoutRecipient(agentId, treasury);
        vm.expectEmit(address(registry));
        emit IAgentRegistry.AgentOwnershipTransferred(agentId, owner, stranger);
        vm.expectEmit(address(registry));
        emit IAgentRegistry.PayoutRecipientUpdated(agentId, stranger);
        registry.transferAgentOwnership(agentId, stranger);
        assertEq(registry.ownerOf(agentId), stranger);
        assertEq(registry.payoutRecipientOf(agentId), stranger);
        assertEq(registry.signerOf(agentId), signer, "the signer stays until the new owner replaces it");

        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.NotAgentOwner.selector, agentId, owner));
        registry.transferAgentOwnership(agentId, owner);
        vm.startPrank(stranger);
        vm.expectRevert(IAgentRegistry.ZeroAddress.selector);
        registry.transferAgentOwnership(agentId, address(0));
    }

    function test_OnlyTheOwnerChangesAnAgentNotEvenItsSigner() public {
        bytes memory refusal = abi.encodeWithSelector(IAgentRegistry.NotAgentOwner.selector, agentId, signer);
        vm.startPrank(signer);
        vm.expectRevert(refusal);
        registry.updateAgentMetadata(agentId, URI);
        vm.expectRevert(refusal);
        registry.setAgentSigner(agentId, stranger);
        vm.expectRevert(refusal);
        registry.setPayoutRecipient(agentId, stranger);
        vm.expectRevert(refusal);
        registry.transferAgentOwnership(agentId, stranger);
    }

    function test_AnUnknownAgentIsFoundByNoGetterAndChangedByNobody() public {
        for (uint256 i = 0; i < 2; ++i) {
            uint256 unknown = i == 0 ? 0 : registry.nextAgentId();
            bytes memory refusal = abi.encodeWithSelector(IAgentRegistry.AgentNotFound.selector, unknown);
            vm.startPrank(operator);
            vm.expectRevert(refusal);
            registry.getAgent(unknown);
            vm.expectRevert(refusal);
            registry.ownerOf(unknown);
            vm.expectRevert(refusal);
            registry.vaultOf(unknown);
            vm.expectRevert(refusal);
            registry.trackOf(unknown);
            vm.expectRevert(refusal);
            registry.statusOf(unknown);
            vm.expectRevert(refusal);
            registry.signerOf(unknown);
            vm.expectRevert(refusal);
            registry.payoutRecipientOf(unknown);
            vm.expectRevert(refusal);
            registry.hasERC8004Identity(unknown);
            vm.expectRevert(refusal);
            registry.isERC8004OwnerCurrent(unknown);
            vm.expectRevert(refusal);
            registry.isPayoutEligible(unknown);
            vm.expectRevert(refusal);
            registry.tradeContextOf(unknown);
            vm.expectRevert(refusal);
            registry.updateAgentMetadata(unknown, URI);
            vm.expectRevert(refusal);
            registry.setAgentSigner(unknown, stranger);
            vm.expectRevert(refusal);
            registry.setPayoutRecipient(unknown, stranger);
            vm.expectRevert(refusal);
            registry.transferAgentOwnership(unknown, stranger);
            vm.expectRevert(refusal);
            registry.setAgentStatus(unknown, SUSPENDED);
            vm.expectRevert(refusal);
            registry.promoteAgent(unknown, 1);
        }
    }

    function test_TheGettersAgreeWithTheRecord() public view {
        IAgentRegistry.Agent memory agent = registry.getAgent(agentId);
        assertEq(registry.vaultOf(agentId), agent.vault);
        assertEq(registry.trackOf(agentId), agent.track);
        assertEq(registry.statusOf(agentId), agent.status);
        assertEq(registry.feeManager(), address(fees));
        assertEq(registry.vaultTrackRegistry(), address(tracks));
        assertEq(registry.allocationManager(), address(allocations));
    }

    function test_TradingReadsThreeSlots() public {
        vm.prank(operator);
        registry.pause();
        vm.record();
        (address tradeSigner, address tradeVault, uint8 track, uint8 status,, bool paused) =
            registry.tradeContextOf(agentId);
        (bytes32[] memory reads,) = vm.accesses(address(registry));
        assertEq(tradeSigner, signer);
        assertEq(tradeVault, vault);
        assertEq(track, 0);
        assertEq(status, ACTIVE);
        assertTrue(paused);
        assertLe(_distinct(reads), 3);
    }

    /// The whole table of moves: what it names goes through, all else is refused.
    function test_AnAgentMovesOnlyAsTheTableSays() public {
        uint8[4] memory starts = [ACTIVE, SUSPENDED, GRADUATED, FAILED];
        for (uint256 i = 0; i < starts.length; ++i) {
            for (uint8 to = DRAFT; to <= EXITED; ++to) {
                uint8 from = starts[i];
                uint256 id = _agentIn(from);
                if (_isInTable(from, to)) {
                    vm.expectEmit(address(registry));
                    emit IAgentRegistry.AgentStatusChanged(id, from, to);
                } else {
                    vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.IllegalStatusMove.selector, id, from, to));
                }
                vm.prank(operator);
                registry.setAgentStatus(id, to);
                assertEq(registry.statusOf(id), _isInTable(from, to) ? to : from);
            }
        }
    }

    function test_AnExitedAgentStaysExited() public {
        uint256 id = _agentIn(EXITED);
        for (uint8 to = DRAFT; to <= EXITED; ++to) {
            vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.IllegalStatusMove.selector, id, EXITED, to));
            vm.prank(operator);
            registry.setAgentStatus(id, to);
        }
    }

    function testFuzz_RefusesAStatusThatIsNone(uint8 status) public {
        status = uint8(bound(status, EXITED + 1, type(uint8).max));
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.InvalidAgentStatus.selector, status));
        vm.prank(operator);
        registry.setAgentStatus(agentId, status);
    }

    function test_OnlyTheOperatorMoves() public {
        bytes memory refusal = abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, owner, registry.OPERATOR_ROLE()
        );
        vm.startPrank(owner);
        vm.expectRevert(refusal);
        registry.setAgentStatus(agentId, SUSPENDED);
    }

    function test_AFinalStatusRemovesTheAllocationAndNoOtherDoes() public {
        registry.promoteAgent(agentId, 1);
        uint8[3] memory others = [SUSPENDED, ACTIVE, GRADUATED];
        for (uint256 i = 0; i < others.length; ++i) {
            vm.prank(operator);
            registry.setAgentStatus(agentId, others[i]);
            assertEq(allocations.getAllocation(agentId).status, uint8(IAllocationManager.AllocationStatus.Active));
        }
        assertEq(allocations.totalAgentCaps(vault), 10_000e6);

        vm.prank(operator);
        registry.setAgentStatus(agentId, FAILED);
        assertEq(allocations.getAllocation(agentId).status, uint8(IAllocationManager.AllocationStatus.Removed));
        assertEq(allocations.totalAgentCaps(vault), 0);
    }

    function test_AnAgentWhoseAllocationIsRemovedAlreadyMayStillExit() public {
        vm.startPrank(operator);
        allocations.setAllocationStatus(agentId, uint8(IAllocationManager.AllocationStatus.Removed));
        registry.setAgentStatus(agentId, EXITED);
        assertEq(registry.statusOf(agentId), EXITED);
    }

    function test_PromotionMovesTrackAndAllocationAndTheOwnerPays() public {
        fees.setPromotionFee(vault, 0, 1, 5e6);
        _fund(owner);
        vm.expectEmit(address(registry));
        emit IAgentRegistry.AgentPromoted(agentId, vault, 0, 1);
        vm.expectEmit(address(allocations));
        emit IAllocationManager.AllocationCapUpdated(agentId, 1, 1000e6, 10_000e6);
        vm.expectEmit(address(fees));
        emit IFeeManager.PromotionFeePaid(agentId, owner, vault, 0, 1, 5e6);
        vm.prank(operator);
        registry.promoteAgent(agentId, 1);

        assertEq(registry.trackOf(agentId), 1);
        assertEq(allocations.allocationCap(agentId), 10_000e6);
        assertEq(usdc.balanceOf(owner), 95e6);
    }

    function test_WithoutThePromotionFeeNothingMoves() public {
        fees.setPromotionFee(vault, 0, 1, 5e6);
        vm.expectRevert(abi.encodeWithSelector(IERC20Errors.ERC20InsufficientAllowance.selector, address(fees), 0, 5e6));
        vm.prank(operator);
        registry.promoteAgent(agentId, 1);
        assertEq(registry.trackOf(agentId), 0);
    }

    function test_AGraduateIsActiveAgainOnItsNewTrack() public {
        vm.startPrank(operator);
        registry.setAgentStatus(agentId, GRADUATED);
        vm.expectEmit(address(registry));
        emit IAgentRegistry.AgentStatusChanged(agentId, GRADUATED, ACTIVE);
        registry.promoteAgent(agentId, 1);
        assertEq(registry.statusOf(agentId), ACTIVE);
        assertEq(registry.trackOf(agentId), 1);
    }

    function test_OnlyAnAgentInGoodStandingIsPromoted() public {
        uint8[3] memory bad = [SUSPENDED, FAILED, EXITED];
        for (uint256 i = 0; i < bad.length; ++i) {
            uint256 id = _agentIn(bad[i]);
            vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.AgentNotPromotable.selector, id, bad[i]));
            vm.prank(operator);
            registry.promoteAgent(id, 1);
        }
    }

    function test_APromotionGoesUpToATrackThatIsThereAndOn() public {
        vm.startPrank(operator);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.InvalidTrack.selector, 0));
        registry.promoteAgent(agentId, 0);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.InvalidTrack.selector, 3));
        registry.promoteAgent(agentId, 3);
        registry.promoteAgent(agentId, 1);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.InvalidTrack.selector, 1));
        registry.promoteAgent(agentId, 1);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.InvalidTrack.selector, 0));
        registry.promoteAgent(agentId, 0);

        vm.stopPrank();
        _switchOff(2);
        vm.prank(operator);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.VaultTrackNotActive.selector, vault, 2));
        registry.promoteAgent(agentId, 2);
    }

    function test_PayoutsNeedRealCapital() public {
        assertFalse(registry.isPayoutEligible(agentId));
        vm.prank(operator);
        registry.promoteAgent(agentId, 1);
        assertTrue(registry.isPayoutEligible(agentId));
    }

    function test_PayoutsNeedAnActiveOrGraduatedAgent() public {
        vm.startPrank(operator);
        registry.promoteAgent(agentId, 1);
        registry.setAgentStatus(agentId, SUSPENDED);
        assertFalse(registry.isPayoutEligible(agentId));
        registry.setAgentStatus(agentId, ACTIVE);
        registry.setAgentStatus(agentId, GRADUATED);
        assertTrue(registry.isPayoutEligible(agentId));
        registry.setAgentStatus(agentId, EXITED);
        assertFalse(registry.isPayoutEligible(agentId));
    }

    function test_PayoutsNeedALinkThatIsLiveWhereThereIsOne() public {
        uint256 identity = _identityOf(owner);
        vm.prank(operator);
        registry.promoteAgent(agentId, 1);
        vm.startPrank(owner);
        registry.linkERC8004Identity(agentId, identity);
        assertTrue(registry.isPayoutEligible(agentId));
        identities.transferFrom(owner, stranger, identity);
        assertFalse(registry.isPayoutEligible(agentId));
    }

    function _isInTable(uint8 from, uint8 to) private pure returns (bool) {
        if (from == ACTIVE) return to == SUSPENDED || to == FAILED || to == GRADUATED || to == EXITED;
        if (from == SUSPENDED) return to == ACTIVE || to == FAILED || to == EXITED;
        if (from == GRADUATED) return to == ACTIVE || to == SUSPENDED || to == FAILED || to == EXITED;
        return false;
    }

    function _agentIn(uint8 status) private returns (uint256 id) {
        id = _agentOf(owner);
        if (status == ACTIVE) return id;
        vm.prank(operator);
        registry.setAgentStatus(id, status);
    }

    function _switchOff(uint256 trackId) private {
        IVaultTrackRegistry.TrackType memory track = tracks.getTrackType(trackId);
        track.active = false;
        tracks.setTrackType(track);
    }

    function _distinct(bytes32[] memory slots) private pure returns (uint256 count) {
        for (uint256 i = 0; i < slots.length; ++i) {
            bool seen = false;
            for (uint256 j = 0; j < i; ++j) {
                seen = seen || slots[j] == slots[i];
            }
            if (!seen) ++count;
        }
    }
}
