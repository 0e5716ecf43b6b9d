// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {Pausable} from "@openzeppelin/contracts/utils/Pausable.sol";
import {AgentRegistry} from "../../src/AgentRegistry.sol";
import {SmartAccount} from "../../src/embedded/SmartAccount.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "../../src/interfaces/IAllocationManager.sol";
import {IFeeManager} from "../../src/interfaces/IFeeManager.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {RegistryFixture} from "./RegistryFixture.sol";

contract RegistrationTest is RegistryFixture {
    /// @dev External, since with linked tests an expected revert of `new` itself would end the test.
    function deploy(address admin, address tracks_, address allocations_, address fees_, address identities_)
        external
        returns (AgentRegistry)
    {
        return new AgentRegistry(admin, tracks_, allocations_, fees_, identities_);
    }

    function test_TheTypehashesAreThoseOfTheProtocol() public view {
        assertEq(
            registry.SELF_REGISTER_TYPEHASH(),
            keccak256(
                "SelfRegister(address vault,string name,string metadataURI,address signer,bool linkERC8004,uint256 erc8004AgentId,uint256 nonce,uint256 deadline)"
            )
        );
        assertEq(
            registry.LINK_ERC8004_TYPEHASH(),
            keccak256("LinkERC8004(uint256 agentId,uint256 erc8004AgentId,uint256 nonce,uint256 deadline)")
        );
    }

    function test_TheDigestIsThatOfTheTypedData() public view {
        (, string memory name, string memory version, uint256 chainId, address verifyingContract,,) =
            registry.eip712Domain();
        assertEq(name, "Service AgentRegistry");
        assertEq(version, "1");
        assertEq(chainId, block.chainid);
        assertEq(verifyingContract, address(registry));

        bytes32 structHash = keccak256(
            abi.encode(
                registry.SELF_REGISTER_TYPEHASH(),
                vault,
                keccak256(bytes(NAME)),
                keccak256(bytes(URI)),
                signer,
                true,
                uint256(5),
                uint256(6),
                uint256(7)
            )
        );
        assertEq(registry.hashSelfRegister(vault, NAME, URI, signer, true, 5, 6, 7), _digest(structHash));
        structHash =
            keccak256(abi.encode(registry.LINK_ERC8004_TYPEHASH(), uint256(4), uint256(5), uint256(6), uint256(7)));
        assertEq(registry.hashLinkERC8004(4, 5, 6, 7), _digest(structHash));
    }

    function test_ASignerRegistersItselfAndPaysTheFee() public {
        bytes memory signature = _consent(signer, false, 0, 0, block.timestamp);
        vm.expectEmit(address(registry));
        emit IAgentRegistry.AgentRegistered(1, vault, signer, signer, URI, 0);
        vm.expectEmit(address(allocations));
        emit IAllocationManager.AllocationCreated(1, vault, 0, 1000e6);
        vm.expectEmit(address(fees));
        emit IFeeManager.RegistrationFeePaid(1, signer, FEE);
        vm.prank(signer);
        uint256 agentId = registry.selfRegisterAgent(vault, NAME, URI, signer, false, 0, block.timestamp, signature);

        assertEq(agentId, 1);
        assertEq(registry.nextAgentId(), 2);
        assertEq(registry.nonces(signer), 1);
        assertEq(usdc.balanceOf(treasury), FEE);
        IAgentRegistry.Agent memory agent = registry.getAgent(1);
        assertEq(agent.owner, signer);
        assertEq(agent.signer, signer);
        assertEq(agent.payoutRecipient, signer);
        assertEq(agent.vault, vault);
        assertEq(agent.track, uint8(IAgentRegistry.Track.Challenge));
        assertEq(agent.status, uint8(IAgentRegistry.AgentStatus.Active));
        assertEq(agent.name, NAME);
        assertEq(agent.metadataURI, URI);
        assertEq(agent.createdAt, block.timestamp);
        assertFalse(agent.hasERC8004Identity);
        assertEq(agent.erc8004AgentId, 0);
    }

    function test_TheRelayersRegistrationIsPrepaid() public {
        bytes memory signature = _consent(signer, false, 0, 0, block.timestamp);
        vm.expectEmit(address(fees));
        emit IFeeManager.RegistrationFeePrepaid(1, FEE);
        vm.prank(relayer);
        registry.selfRegisterAgent(vault, NAME, URI, signer, false, 0, block.timestamp, signature);
        assertEq(registry.ownerOf(1), signer);
        assertEq(usdc.balanceOf(treasury), 0);
    }

    function test_AnyoneElseWhoRelaysPaysTheFee() public {
        bytes memory signature = _consent(signer, false, 0, 0, block.timestamp);
        vm.prank(stranger);
        registry.selfRegisterAgent(vault, NAME, URI, signer, false, 0, block.timestamp, signature);
        assertEq(registry.ownerOf(1), signer);
        assertEq(usdc.balanceOf(stranger), 100e6 - FEE);
        assertEq(usdc.balanceOf(treasury), FEE);
    }

    function test_WithoutTheFeeNothingIsRegistered() public {
        bytes memory signature = _consent(signer, false, 0, 0, block.timestamp);
        address poor = makeAddr("poor");
        vm.prank(poor);
        vm.expectRevert(abi.encodeWithSelector(IERC20Errors.ERC20InsufficientAllowance.selector, address(fees), 0, FEE));
        registry.selfRegisterAgent(vault, NAME, URI, signer, false, 0, block.timestamp, signature);
        assertEq(registry.nonces(signer), 0);
        assertEq(registry.nextAgentId(), 1);
    }

    function test_ASignerMayRegisterSeveralAgentsEachWithItsOwnNonce() public {
        for (uint256 nonce = 0; nonce < 3; ++nonce) {
            bytes memory signature = _consent(signer, false, 0, nonce, block.timestamp);
            vm.prank(relayer);
            uint256 agentId = registry.selfRegisterAgent(vault, NAME, URI, signer, false, 0, block.timestamp, signature);
            assertEq(agentId, nonce + 1);
            assertEq(registry.signerOf(agentId), signer);

            vm.expectRevert(IAgentRegistry.InvalidSignature.selector);
            vm.prank(relayer);
            registry.selfRegisterAgent(vault, NAME, URI, signer, false, 0, block.timestamp, signature);
        }
        assertEq(registry.nonces(signer), 3);
    }

    function test_AContractRegistersThroughErc1271() public {
        SmartAccount account = new SmartAccount(signer);
        bytes memory signature = _consent(address(account), false, 0, 0, block.timestamp);
        vm.prank(relayer);
        registry.selfRegisterAgent(vault, NAME, URI, address(account), false, 0, block.timestamp, signature);
        assertEq(registry.ownerOf(1), address(account));
        assertEq(registry.nonces(address(account)), 1);
    }

    function test_AContractThatDoesNotRecognizeTheSignatureDoesNotRegister() public {
        SmartAccount account = new SmartAccount(stranger);
        bytes memory signature = _consent(address(account), false, 0, 0, block.timestamp);
        vm.expectRevert(IAgentRegistry.InvalidSignature.selector);
        registry.selfRegisterAgent(vault, NAME, URI, address(account), false, 0, block.timestamp, signature);
    }

    function test_AnAccountWithDelegatedCodeSignsWithItsOwnKey() public {
        vm.etch(signer, address(new SmartAccount(stranger)).code);
        bytes memory signature = _consent(signer, false, 0, 0, block.timestamp);
        vm.prank(relayer);
        registry.selfRegisterAgent(vault, NAME, URI, signer, false, 0, block.timestamp, signature);
        assertEq(registry.ownerOf(1), signer);
    }

    function testFuzz_RefusesASignatureByAnotherKeyOrOverOtherValues(uint256 key, uint8 field) public {
        key = bound(key, 1, type(uint128).max);
        vm.assume(key != SIGNER_KEY);
        bytes32 digest = registry.hashSelfRegister(vault, NAME, URI, signer, false, 0, 0, block.timestamp);
        _expectInvalidSignature(_sign(key, digest));

        field = uint8(bound(field, 0, 7));
        digest = registry.hashSelfRegister(
            field == 0 ? stranger : vault,
            field == 1 ? "Another" : NAME,
            field == 2 ? "ipfs://another" : URI,
            field == 3 ? stranger : signer,
            field == 4,
            field == 5 ? 1 : 0,
            field == 6 ? 1 : 0,
            field == 7 ? block.timestamp + 1 : block.timestamp
        );
        _expectInvalidSignature(_sign(SIGNER_KEY, digest));
    }

    function testFuzz_RefusesAMalformedSignature(bytes calldata noise) public {
        _expectInvalidSignature(noise);
    }

    function test_RefusesTheSecondFormOfASignature() public {
        (uint8 v, bytes32 r, bytes32 s) =
            vm.sign(SIGNER_KEY, registry.hashSelfRegister(vault, NAME, URI, signer, false, 0, 0, block.timestamp));
        uint256 order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141;
        _expectInvalidSignature(abi.encodePacked(r, order - uint256(s), v == 27 ? uint8(28) : uint8(27)));
    }

    function test_TheDeadlineIsTheLastSecond() public {
        bytes memory late = _consent(signer, false, 0, 0, block.timestamp - 1);
        vm.prank(relayer);
        vm.expectRevert(IAgentRegistry.ExpiredDeadline.selector);
        registry.selfRegisterAgent(vault, NAME, URI, signer, false, 0, block.timestamp - 1, late);

        bytes memory timely = _consent(signer, false, 0, 0, block.timestamp);
        vm.prank(relayer);
        registry.selfRegisterAgent(vault, NAME, URI, signer, false, 0, block.timestamp, timely);
    }

    function test_TheZeroAddressSignsNothing() public {
        vm.expectRevert(IAgentRegistry.InvalidSignature.selector);
        registry.selfRegisterAgent(vault, NAME, URI, address(0), false, 0, block.timestamp, new bytes(65));
    }

    function test_TheRegistrarRegistersForAnother() public {
        vm.expectEmit(address(registry));
        emit IAgentRegistry.AgentRegistered(1, vault, stranger, signer, URI, 0);
        vm.prank(registrar);
        assertEq(registry.registerAgent(stranger, vault, NAME, URI, signer, false, 0), 1);
        assertEq(registry.ownerOf(1), stranger);
        assertEq(registry.signerOf(1), signer);
        assertEq(registry.payoutRecipientOf(1), stranger);
        assertEq(registry.nonces(signer), 0);
        assertEq(usdc.balanceOf(registrar), 100e6 - FEE);
    }

    function test_OnlyTheRegistrarRegistersForAnother() public {
        bytes32 role = registry.REGISTRAR_ROLE();
        vm.expectRevert(
            abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, stranger, role)
        );
        vm.prank(stranger);
        registry.registerAgent(stranger, vault, NAME, URI, signer, false, 0);
    }

    function test_RefusesTheZeroAddressAsOwnerOrSigner() public {
        vm.startPrank(registrar);
        vm.expectRevert(IAgentRegistry.ZeroAddress.selector);
        registry.registerAgent(address(0), vault, NAME, URI, signer, false, 0);
        vm.expectRevert(IAgentRegistry.ZeroAddress.selector);
        registry.registerAgent(stranger, vault, NAME, URI, address(0), false, 0);
    }

    function test_ANameHas1To128BytesAndAUri1To2048() public {
        vm.startPrank(registrar);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.InvalidName.selector, 0));
        registry.registerAgent(stranger, vault, "", URI, signer, false, 0);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.InvalidName.selector, 129));
        registry.registerAgent(stranger, vault, _text(129), URI, signer, false, 0);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.InvalidMetadataURI.selector, 0));
        registry.registerAgent(stranger, vault, NAME, "", signer, false, 0);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.InvalidMetadataURI.selector, 2049));
        registry.registerAgent(stranger, vault, NAME, _text(2049), signer, false, 0);

        registry.registerAgent(stranger, vault, _text(1), _text(1), signer, false, 0);
        registry.registerAgent(stranger, vault, _text(128), _text(2048), signer, false, 0);
        assertEq(registry.getAgent(2).name, _text(128));
        assertEq(registry.getAgent(2).metadataURI, _text(2048));
    }

    function test_RefusesAVaultThatIsNotRegisteredOrWhoseFirstTrackIsOff() public {
        vm.startPrank(registrar);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.VaultNotRegistered.selector, stranger));
        registry.registerAgent(stranger, stranger, NAME, URI, signer, false, 0);

        vm.stopPrank();
        tracks.setTrackType(IVaultTrackRegistry.TrackType(0, "CHALLENGE", 0, false));
        vm.prank(registrar);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.VaultTrackNotActive.selector, vault, 0));
        registry.registerAgent(stranger, vault, NAME, URI, signer, false, 0);
    }

    function test_RefusesAnIdentityThatIsNotToBeLinked() public {
        vm.prank(registrar);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.ERC8004IdWithoutLink.selector, 3));
        registry.registerAgent(stranger, vault, NAME, URI, signer, false, 3);
    }

    function test_RegistersWithIdentityZero() public {
        assertEq(_identityOf(signer), 0);
        bytes memory signature = _consent(signer, true, 0, 0, block.timestamp);
        vm.expectEmit(address(registry));
        emit IAgentRegistry.ERC8004IdentityLinked(1, address(identities), block.chainid, 0, signer);
        vm.prank(relayer);
        registry.selfRegisterAgent(vault, NAME, URI, signer, true, 0, block.timestamp, signature);
        assertTrue(registry.hasERC8004Identity(1));
        assertEq(registry.agentIdByERC8004(0), 1);
        assertTrue(registry.isERC8004OwnerCurrent(1));
    }

    function test_RefusesToRegisterWithAnIdentityOfAnother() public {
        uint256 identity = _identityOf(stranger);
        bytes memory signature = _consent(signer, true, identity, 0, block.timestamp);
        vm.expectRevert(
            abi.encodeWithSelector(IAgentRegistry.ERC8004OwnerMismatch.selector, identity, signer, stranger)
        );
        vm.prank(relayer);
        registry.selfRegisterAgent(vault, NAME, URI, signer, true, identity, block.timestamp, signature);
        assertEq(registry.nonces(signer), 0);
    }

    function test_APausedRegistryRegistersNobody() public {
        vm.prank(operator);
        registry.pause();
        assertTrue(registry.paused());
        bytes memory signature = _consent(signer, false, 0, 0, block.timestamp);

        vm.expectRevert(Pausable.EnforcedPause.selector);
        vm.prank(relayer);
        registry.selfRegisterAgent(vault, NAME, URI, signer, false, 0, block.timestamp, signature);
        vm.expectRevert(Pausable.EnforcedPause.selector);
        vm.prank(registrar);
        registry.registerAgent(stranger, vault, NAME, URI, signer, false, 0);

        vm.prank(operator);
        registry.unpause();
        vm.prank(relayer);
        registry.selfRegisterAgent(vault, NAME, URI, signer, false, 0, block.timestamp, signature);
        assertEq(registry.ownerOf(1), signer);
    }

    function test_OnlyTheOperatorPauses() public {
        bytes memory refusal = abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, stranger, registry.OPERATOR_ROLE()
        );
        vm.startPrank(stranger);
        vm.expectRevert(refusal);
        registry.pause();
        vm.expectRevert(refusal);
        registry.unpause();
    }

    function test_TheGuardianOnlyPauses() public {
        uint256 id = _agentOf(signer);
        address guardian = makeAddr("guardian");
        registry.grantRole(registry.GUARDIAN_ROLE(), guardian);
        (bytes32 admins, bytes32 operators) = (registry.DEFAULT_ADMIN_ROLE(), registry.OPERATOR_ROLE());
        bytes32 registrars = registry.REGISTRAR_ROLE();
        vm.startPrank(guardian);
        registry.pause();
        assertTrue(registry.paused());

        _refuse(guardian, operators);
        registry.unpause();
        _refuse(guardian, operators);
        registry.setAgentStatus(id, uint8(IAgentRegistry.AgentStatus.Suspended));
        _refuse(guardian, registrars);
        registry.registerAgent(signer, vault, NAME, URI, signer, false, 0);
        _refuse(guardian, admins);
        registry.setPromotionCriteria(address(1));
        _refuse(guardian, admins);
        registry.setOwnerControls(address(1));
        _refuse(guardian, admins);
        registry.grantRole(operators, guardian);
        _refuse(guardian, admins);
        registry.beginDefaultAdminTransfer(guardian);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.OnlyOwnerControls.selector, guardian));
        registry.setMandateState(id, 0);
    }

    function test_RefusesToBeDeployedWithoutWhatItTalksTo() public {
        address some = address(tracks);
        address none = address(0);
        vm.expectRevert(IAgentRegistry.ZeroAddress.selector);
        this.deploy(none, some, some, some, some);
        vm.expectRevert(IAgentRegistry.ZeroAddress.selector);
        this.deploy(some, none, some, some, some);
        vm.expectRevert(IAgentRegistry.ZeroAddress.selector);
        this.deploy(some, some, none, some, some);
        vm.expectRevert(IAgentRegistry.ZeroAddress.selector);
        this.deploy(some, some, some, none, some);
    }

    /// @dev `SelfRegister` of the fixture's name and URI, signed with the signer's key.
    function _consent(address account, bool linkERC8004, uint256 erc8004AgentId, uint256 nonce, uint256 deadline)
        private
        view
        returns (bytes memory)
    {
        return _sign(
            SIGNER_KEY,
            registry.hashSelfRegister(vault, NAME, URI, account, linkERC8004, erc8004AgentId, nonce, deadline)
        );
    }

    function _expectInvalidSignature(bytes memory signature) private {
        vm.expectRevert(IAgentRegistry.InvalidSignature.selector);
        vm.prank(relayer);
        registry.selfRegisterAgent(vault, NAME, URI, signer, false, 0, block.timestamp, signature);
    }

    function _digest(bytes32 structHash) private view returns (bytes32) {
        bytes32 domain = keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256("Service AgentRegistry"),
                keccak256("1"),
                block.chainid,
                address(registry)
            )
        );
        return keccak256(abi.encodePacked(hex"1901", domain, structHash));
    }

    function _text(uint256 length) private pure returns (string memory) {
        bytes memory text = new bytes(length);
        for (uint256 i = 0; i < length; ++i) {
            text[i] = "a";
        }
        return string(text);
    }

    function _refuse(address caller, bytes32 role) private {
        vm.expectRevert(abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, caller, role));
    }
}
