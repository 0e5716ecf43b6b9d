// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC721Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {Test} from "forge-std/Test.sol";
import {ERC8004IdentityRegistry} from "../../src/embedded/ERC8004IdentityRegistry.sol";
import {ERC8004ReputationRegistry} from "../../src/embedded/ERC8004ReputationRegistry.sol";

contract ERC8004ReputationRegistryTest is Test {
    ERC8004IdentityRegistry private identities = new ERC8004IdentityRegistry();
    ERC8004ReputationRegistry private reputation = new ERC8004ReputationRegistry(identities);
    address private owner = makeAddr("owner");
    address private client = makeAddr("client");

    function setUp() public {
        vm.prank(owner);
        identities.register();
    }

    function test_FeedbackIsNumberedFromOneAndMayBeNegative() public {
        vm.expectEmit(address(reputation));
        emit ERC8004ReputationRegistry.NewFeedback(
            0, client, 1, -32, 1, "tradingYield", "tradingYield", "week", "", "https://service.example/1", bytes32("a")
        );
        _give(client, -32);
        _give(client, 17);

        assertEq(reputation.getLastIndex(0, client), 2);
        assertEq(reputation.getClients(0).length, 1);
        assertEq(reputation.getIdentityRegistry(), address(identities));
        (int128 value, uint8 decimals, string memory tag1, string memory tag2, bool isRevoked) =
            reputation.readFeedback(0, client, 1);
        assertEq(value, -32);
        assertEq(decimals, 1);
        assertEq(tag1, "tradingYield");
        assertEq(tag2, "week");
        assertFalse(isRevoked);
    }

    function test_TheAgentsOwnSideGivesNoFeedback() public {
        vm.expectRevert(abi.encodeWithSelector(ERC8004ReputationRegistry.SelfFeedback.selector, 0, owner));
        _give(owner, 1);
        vm.prank(owner);
        identities.approve(client, 0);
        vm.expectRevert(abi.encodeWithSelector(ERC8004ReputationRegistry.SelfFeedback.selector, 0, client));
        _give(client, 1);
    }

    function test_AnUnknownAgentGetsNoFeedback() public {
        vm.expectRevert(abi.encodeWithSelector(IERC721Errors.ERC721NonexistentToken.selector, 9));
        vm.prank(client);
        reputation.giveFeedback(9, 1, 0, "", "", "", "", 0);
    }

    function test_ValuesHaveAtMostEighteenDecimals() public {
        vm.expectRevert(abi.encodeWithSelector(ERC8004ReputationRegistry.TooManyDecimals.selector, 19));
        vm.prank(client);
        reputation.giveFeedback(0, 1, 19, "", "", "", "", 0);
    }

    function test_AClientRevokesItsFeedbackOnce() public {
        _give(client, 1);
        vm.startPrank(client);
        reputation.revokeFeedback(0, 1);
        (,,,, bool isRevoked) = reputation.readFeedback(0, client, 1);
        assertTrue(isRevoked);
        vm.expectRevert(abi.encodeWithSelector(ERC8004ReputationRegistry.AlreadyRevoked.selector, 0, client, 1));
        reputation.revokeFeedback(0, 1);
        vm.expectRevert(abi.encodeWithSelector(ERC8004ReputationRegistry.UnknownFeedback.selector, 0, client, 2));
        reputation.revokeFeedback(0, 2);
    }

    function _give(address from, int128 value) private {
        vm.prank(from);
        reputation.giveFeedback(0, value, 1, "tradingYield", "week", "", "https://service.example/1", bytes32("a"));
    }
}
