// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IOwnerControls} from "../../src/interfaces/IOwnerControls.sol";
import {IPromotionCriteria} from "../../src/interfaces/IPromotionCriteria.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

/// @notice A track that lets agents leave it only with the certificate of an examination that it names
contract ExaminationTest is ProtocolTest {
    bytes32 private constant EXAMINATION = keccak256("hundred markets");
    bytes32 private constant EASIER = keccak256("one rising market");
    bytes32 private constant RESULTS = keccak256("results");

    IPromotionCriteria private criteria;

    function setUp() public override {
        super.setUp();
        IVaultTrackRegistry.VaultTrackConfig memory config = _easyPolicy();
        _setPolicy(config);
        config.trackId = 1;
        _setPolicy(config);
        vm.prank(admin);
        tracks.setTrackType(IVaultTrackRegistry.TrackType({trackId: 2, name: "PRIME", capitalMode: 1, active: true}));
        config.trackId = 2;
        _setPolicy(config);
        criteria = IPromotionCriteria(agents.promotionCriteria());
        _require(0, EXAMINATION);
    }

    function test_AnAgentLeavesTheTrackWithTheCertificateThatItRequires() public {
        _refusePromotion();
        vm.expectEmit(address(controls));
        emit IOwnerControls.CertificateClaimed(agentId, owner, EXAMINATION, _certificate(owner));
        _claim(owner, EXAMINATION);

        (bytes32 examination, bytes32 certificate) = criteria.examinationOf(agentId);
        assertEq(examination, EXAMINATION);
        assertEq(certificate, _certificate(owner));
        assertTrue(criteria.criteriaOf(agentId).isEligible);
        agents.promoteAgent(agentId, 1);
    }

    function test_ATrackRequiresNoneUnlessTheAdminNamesOne() public {
        _require(0, 0);
        (bytes32 examination, bytes32 certificate) = criteria.examinationOf(agentId);
        assertEq(examination, 0);
        assertEq(certificate, 0);
        agents.promoteAgent(agentId, 1);
    }

    function test_OnlyTheAdminNamesAnExaminationOfAConfiguredTrack() public {
        bytes32 role = tracks.DEFAULT_ADMIN_ROLE();
        vm.expectRevert(
            abi.encodeWithSignature("AccessControlUnauthorizedAccount(address,bytes32)", address(this), role)
        );
        tracks.setRequiredExamination(address(vault), 0, 0);
        vm.prank(admin);
        vm.expectRevert(abi.encodeWithSelector(IVaultTrackRegistry.VaultTrackNotConfigured.selector, address(vault), 9));
        tracks.setRequiredExamination(address(vault), 9, EXAMINATION);
    }

    function test_AnotherConfigurationOfTheTrackKeepsItsExamination() public {
        _setPolicy(_easyPolicy());
        assertEq(tracks.requiredExaminationOf(address(vault), 0), EXAMINATION);
        _refusePromotion();
    }

    /// @dev What the author of an easy examination would try.
    function test_ACertificateOfAnotherExaminationDoesNotCount() public {
        _claim(owner, EASIER);
        _refusePromotion();
        // The name of the required examination with other results gives another certificate than that of the easier one.
        _claim(owner, EXAMINATION);
        assertNotEq(controls.certificateOf(agentId, EXAMINATION), controls.certificateOf(agentId, EASIER));
    }

    /// @dev Repeats what another owner has sent: the certificate of that owner does not become one of this agent.
    function test_ACopiedClaimIsNotTheCertificateOfTheOther() public {
        address copier = makeAddr("copier");
        vm.prank(admin);
        uint256 other = agents.registerAgent(copier, address(vault), "Copy", "ipfs://copy", copier, false, 0);
        vm.prank(copier);
        controls.claimCertificate(other, EXAMINATION, RESULTS);
        _claim(owner, EXAMINATION);
        assertEq(controls.certificateOf(agentId, EXAMINATION), _certificate(owner));
        assertNotEq(controls.certificateOf(other, EXAMINATION), _certificate(owner));
    }

    function test_OnlyTheOwnerClaimsForItsAgent() public {
        for (uint256 i; i < 3; ++i) {
            address other = [vm.addr(signerKey), admin, operator][i];
            vm.prank(other);
            vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.NotAgentOwner.selector, agentId, other));
            controls.claimCertificate(agentId, EXAMINATION, RESULTS);
        }
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.AgentNotFound.selector, 99));
        controls.claimCertificate(99, EXAMINATION, RESULTS);
    }

    /// @dev Or a claim that somebody has refuted would disappear after the promotion.
    function test_AClaimIsFinal() public {
        _claim(owner, EXAMINATION);
        agents.promoteAgent(agentId, 1);
        vm.prank(owner);
        vm.expectRevert(
            abi.encodeWithSelector(IOwnerControls.CertificateAlreadyClaimed.selector, agentId, _certificate(owner))
        );
        controls.claimCertificate(agentId, EXAMINATION, keccak256("better results"));
        assertEq(controls.certificateOf(agentId, EXAMINATION), _certificate(owner));
    }

    function test_ANewOwnerHasToExamineItsAgentItself() public {
        address buyer = makeAddr("buyer");
        _claim(owner, EXAMINATION);
        vm.prank(owner);
        agents.transferAgentOwnership(agentId, buyer);
        _refusePromotion();

        // Nor does the former owner's claim revive when the agent comes back.
        vm.prank(buyer);
        agents.transferAgentOwnership(agentId, owner);
        _refusePromotion();
        _claim(owner, EXAMINATION);
        agents.promoteAgent(agentId, 1);
    }

    function test_EachTrackRequiresItsOwnExamination() public {
        _claim(owner, EXAMINATION);
        agents.promoteAgent(agentId, 1);
        _require(1, EASIER);
        vm.expectRevert(abi.encodeWithSelector(IPromotionCriteria.ExaminationMissing.selector, agentId, EASIER));
        agents.promoteAgent(agentId, 2);
        _claim(owner, EASIER);
        agents.promoteAgent(agentId, 2);
    }

    /// @dev Nor does the operator promote without it, and an examination that was named later applies at once.
    function test_TheOperatorCannotPromoteWithoutTheCertificateEither() public {
        vm.prank(operator);
        vm.expectRevert(abi.encodeWithSelector(IPromotionCriteria.ExaminationMissing.selector, agentId, EXAMINATION));
        agents.promoteAgent(agentId, 1);
        _claim(owner, EXAMINATION);
        _require(0, EASIER);
        vm.expectRevert(abi.encodeWithSelector(IPromotionCriteria.ExaminationMissing.selector, agentId, EASIER));
        agents.promoteAgent(agentId, 1);
    }

    /// @dev Without other criteria.
    function _easyPolicy() private view returns (IVaultTrackRegistry.VaultTrackConfig memory config) {
        config = _policy();
        (config.minTrades, config.evaluationPeriod, config.promotionScore) = (0, 0, 0);
    }

    function _require(uint256 trackId, bytes32 examination) private {
        vm.prank(admin);
        tracks.setRequiredExamination(address(vault), trackId, examination);
    }

    function _claim(address claimant, bytes32 examination) private {
        vm.prank(claimant);
        controls.claimCertificate(agentId, examination, RESULTS);
    }

    function _certificate(address author) private pure returns (bytes32) {
        return keccak256(abi.encode(EXAMINATION, author, RESULTS));
    }

    function _refusePromotion() private {
        assertFalse(criteria.criteriaOf(agentId).isEligible);
        vm.expectRevert(abi.encodeWithSelector(IPromotionCriteria.ExaminationMissing.selector, agentId, EXAMINATION));
        agents.promoteAgent(agentId, 1);
    }
}
