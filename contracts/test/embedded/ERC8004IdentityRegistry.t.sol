// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC721} from "@openzeppelin/contracts/token/ERC721/IERC721.sol";
import {IERC721Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {Test} from "forge-std/Test.sol";
import {ERC8004IdentityRegistry} from "../../src/embedded/ERC8004IdentityRegistry.sol";
import {SmartAccount} from "../../src/embedded/SmartAccount.sol";

contract ERC8004IdentityRegistryTest is Test {
    uint256 private constant WALLET_KEY = 0xA11CE;

    ERC8004IdentityRegistry private identities;
    address private owner = makeAddr("owner");
    address private stranger = makeAddr("stranger");
    address private wallet = vm.addr(WALLET_KEY);

    function setUp() public {
        vm.warp(1_000_000);
        identities = new ERC8004IdentityRegistry();
    }

    function test_TheFirstAgentHasIdZeroAndItsOwnerAsWallet() public {
        vm.expectEmit(address(identities));
        emit ERC8004IdentityRegistry.Registered(0, "", owner);
        vm.expectEmit(address(identities));
        emit ERC8004IdentityRegistry.MetadataSet(0, "agentWallet", "agentWallet", abi.encodePacked(owner));
        vm.prank(owner);
        uint256 agentId = identities.register();

        assertEq(agentId, 0);
        assertEq(identities.ownerOf(0), owner);
        assertEq(identities.getAgentWallet(0), owner);
        assertEq(identities.getMetadata(0, "agentWallet"), abi.encodePacked(owner));
        assertEq(identities.tokenURI(0), "");
        assertEq(identities.name(), "AgentIdentity");
        assertEq(identities.symbol(), "AGENT");
    }

    function test_RegistersWithAFileAndMetadata() public {
        ERC8004IdentityRegistry.MetadataEntry[] memory metadata = new ERC8004IdentityRegistry.MetadataEntry[](2);
        metadata[0] = ERC8004IdentityRegistry.MetadataEntry("model", "m1");
        metadata[1] = ERC8004IdentityRegistry.MetadataEntry("region", "eu");

        vm.startPrank(owner);
        assertEq(identities.register("ipfs://one"), 0);
        assertEq(identities.register("ipfs://two", metadata), 1);
        assertEq(identities.tokenURI(0), "ipfs://one");
        assertEq(identities.tokenURI(1), "ipfs://two");
        assertEq(identities.getMetadata(1, "model"), "m1");
        assertEq(identities.getMetadata(1, "region"), "eu");
        assertEq(identities.getMetadata(0, "model"), "");
        assertEq(identities.balanceOf(owner), 2);
    }

    function test_TheWalletIsNoPlainMetadata() public {
        ERC8004IdentityRegistry.MetadataEntry[] memory metadata = new ERC8004IdentityRegistry.MetadataEntry[](1);
        metadata[0] = ERC8004IdentityRegistry.MetadataEntry("agentWallet", abi.encodePacked(stranger));
        bytes memory refusal =
            abi.encodeWithSelector(ERC8004IdentityRegistry.ReservedMetadataKey.selector, "agentWallet");

        vm.startPrank(owner);
        vm.expectRevert(refusal);
        identities.register("ipfs://one", metadata);
        identities.register();
        vm.expectRevert(refusal);
        identities.setMetadata(0, "agentWallet", abi.encodePacked(stranger));
    }

    function testFuzz_TheOwnerSetsMetadata(string calldata key, bytes calldata value) public {
        vm.assume(keccak256(bytes(key)) != keccak256("agentWallet"));
        vm.startPrank(owner);
        identities.register();
        vm.expectEmit(address(identities));
        emit ERC8004IdentityRegistry.MetadataSet(0, key, key, value);
        identities.setMetadata(0, key, value);
        assertEq(identities.getMetadata(0, key), value);
    }

    function test_TheOwnerReplacesTheFile() public {
        vm.startPrank(owner);
        identities.register("ipfs://one");
        vm.expectEmit(address(identities));
        emit ERC8004IdentityRegistry.URIUpdated(0, "ipfs://two", owner);
        identities.setAgentURI(0, "ipfs://two");
        assertEq(identities.tokenURI(0), "ipfs://two");
    }

    function test_AnApprovedOperatorMayActForTheOwner() public {
        vm.startPrank(owner);
        identities.register();
        assertTrue(identities.isAuthorizedOrOwner(owner, 0));
        assertFalse(identities.isAuthorizedOrOwner(stranger, 0));
        identities.approve(stranger, 0);
        assertTrue(identities.isAuthorizedOrOwner(stranger, 0));
        identities.approve(address(0), 0);
        identities.setApprovalForAll(stranger, true);
        assertTrue(identities.isAuthorizedOrOwner(stranger, 0));

        vm.stopPrank();
        vm.prank(stranger);
        identities.setAgentURI(0, "ipfs://by-operator");
        assertEq(identities.tokenURI(0), "ipfs://by-operator");
    }

    function test_AStrangerMayNot() public {
        vm.prank(owner);
        identities.register();
        bytes memory refusal = abi.encodeWithSelector(ERC8004IdentityRegistry.NotAuthorized.selector, stranger, 0);

        vm.startPrank(stranger);
        vm.expectRevert(refusal);
        identities.setAgentURI(0, "ipfs://other");
        vm.expectRevert(refusal);
        identities.setMetadata(0, "model", "m2");
        vm.expectRevert(refusal);
        identities.unsetAgentWallet(0);
        vm.expectRevert(refusal);
        identities.setAgentWallet(0, stranger, block.timestamp, "");
    }

    function test_AnUnknownAgentHasNoOwnerFileOrWallet() public {
        bytes memory refusal = abi.encodeWithSelector(IERC721Errors.ERC721NonexistentToken.selector, 5);
        assertEq(identities.getAgentWallet(5), address(0));
        vm.expectRevert(refusal);
        identities.ownerOf(5);
        vm.expectRevert(refusal);
        identities.tokenURI(5);
        vm.expectRevert(refusal);
        identities.isAuthorizedOrOwner(owner, 5);
        vm.expectRevert(refusal);
        identities.setAgentURI(5, "ipfs://other");
    }

    function test_AWalletConsentsByItsSignature() public {
        uint256 deadline = block.timestamp + identities.MAX_DEADLINE_DELAY();
        bytes memory consent = _consent(WALLET_KEY, 0, wallet, owner, deadline);
        vm.startPrank(owner);
        identities.register();

        vm.expectEmit(address(identities));
        emit ERC8004IdentityRegistry.MetadataSet(0, "agentWallet", "agentWallet", abi.encodePacked(wallet));
        identities.setAgentWallet(0, wallet, deadline, consent);
        assertEq(identities.getAgentWallet(0), wallet);

        identities.unsetAgentWallet(0);
        assertEq(identities.getAgentWallet(0), address(0));
        assertEq(identities.getMetadata(0, "agentWallet"), "");
    }

    function test_AContractConsentsThroughErc1271() public {
        SmartAccount account = new SmartAccount(wallet);
        vm.startPrank(owner);
        identities.register();
        identities.setAgentWallet(
            0, address(account), block.timestamp, _consent(WALLET_KEY, 0, address(account), owner, block.timestamp)
        );
        assertEq(identities.getAgentWallet(0), address(account));
    }

    function test_RefusesAWalletWithoutItsConsent() public {
        vm.startPrank(owner);
        identities.register();
        uint256 deadline = block.timestamp;
        bytes memory foreign = _consent(0xB0B, 0, wallet, owner, deadline);
        bytes memory forAnotherOwner = _consent(WALLET_KEY, 0, wallet, stranger, deadline);
        bytes memory refusal = abi.encodeWithSelector(ERC8004IdentityRegistry.InvalidWalletSignature.selector, wallet);

        vm.expectRevert(refusal);
        identities.setAgentWallet(0, wallet, deadline, foreign);
        vm.expectRevert(refusal);
        identities.setAgentWallet(0, wallet, deadline, forAnotherOwner);
        vm.expectRevert(ERC8004IdentityRegistry.ZeroWallet.selector);
        identities.setAgentWallet(0, address(0), deadline, foreign);
    }

    function test_AConsentHoldsFiveMinutesAtMost() public {
        vm.startPrank(owner);
        identities.register();
        uint256 latest = block.timestamp + 5 minutes;
        uint256 expired = block.timestamp - 1;
        bytes memory early = _consent(WALLET_KEY, 0, wallet, owner, latest + 1);
        bytes memory late = _consent(WALLET_KEY, 0, wallet, owner, expired);

        vm.expectRevert(abi.encodeWithSelector(ERC8004IdentityRegistry.DeadlineTooFar.selector, latest + 1, latest));
        identities.setAgentWallet(0, wallet, latest + 1, early);
        vm.expectRevert(
            abi.encodeWithSelector(ERC8004IdentityRegistry.ExpiredDeadline.selector, expired, block.timestamp)
        );
        identities.setAgentWallet(0, wallet, expired, late);
    }

    function test_ATransferLeavesTheAgentWithoutAWallet() public {
        vm.startPrank(owner);
        identities.register();
        vm.expectEmit(address(identities));
        emit ERC8004IdentityRegistry.MetadataSet(0, "agentWallet", "agentWallet", "");
        identities.transferFrom(owner, stranger, 0);
        assertEq(identities.ownerOf(0), stranger);
        assertEq(identities.getAgentWallet(0), address(0));
    }

    function test_AContractThatTakesNoTokensIsNotRegistered() public {
        vm.expectRevert(abi.encodeWithSelector(IERC721Errors.ERC721InvalidReceiver.selector, address(this)));
        identities.register();
    }

    function test_IsAnErc721WithTheStandardsDomainAndTypehash() public view {
        assertTrue(identities.supportsInterface(type(IERC721).interfaceId));
        (, string memory name, string memory version,, address verifyingContract,,) = identities.eip712Domain();
        assertEq(name, "ERC8004IdentityRegistry");
        assertEq(version, "1");
        assertEq(verifyingContract, address(identities));
        assertEq(
            identities.AGENT_WALLET_SET_TYPEHASH(),
            keccak256("AgentWalletSet(uint256 agentId,address newWallet,address owner,uint256 deadline)")
        );
    }

    function _consent(uint256 key, uint256 agentId, address newWallet, address forOwner, uint256 deadline)
        private
        view
        returns (bytes memory)
    {
        bytes32 domain = keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256("ERC8004IdentityRegistry"),
                keccak256("1"),
                block.chainid,
                address(identities)
            )
        );
        bytes32 structHash =
            keccak256(abi.encode(identities.AGENT_WALLET_SET_TYPEHASH(), agentId, newWallet, forOwner, deadline));
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, MessageHashUtils.toTypedDataHash(domain, structHash));
        return abi.encodePacked(r, s, v);
    }
}
