// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Test} from "forge-std/Test.sol";
import {AllocationManager} from "../src/AllocationManager.sol";
import {VaultTrackRegistry} from "../src/VaultTrackRegistry.sol";

/// @notice The ledger's book of losses, with its private functions
contract LedgerBooks is AllocationManager {
    constructor(address admin, address tracks) AllocationManager(admin, tracks) {}

    function payLoss(uint256 agentId, uint256 loss) external returns (uint256) {
        return _recordLossPaid(agentId, loss);
    }

    function enterTrack(uint256 agentId) external {
        _enterTrack(agentId);
    }
}

/// @notice First-loss accounting, for every loss below 2^56
contract FirstLossProofs is Test {
    LedgerBooks private books;

    function setUp() public {
        vm.warp(20_000 days);
        books = new LedgerBooks(address(this), address(new VaultTrackRegistry(address(this))));
    }

    /// @dev Whatever the losses after each sale are, all payments together are the largest: each unit once, and no gain.
    function check_EachLossOfATrackIsPaidOnce(uint56 first, uint56 second, uint56 third) public {
        uint256 paid = books.payLoss(1, first) + books.payLoss(1, second) + books.payLoss(1, third);
        uint256 worst = first > second ? first : second;
        assert(paid == (worst > third ? worst : third));
    }

    function check_ANewTrackOwesNothingOfTheOldOne(uint56 before, uint56 loss) public {
        books.payLoss(1, before);
        books.enterTrack(1);
        assert(books.payLoss(1, loss) == loss);
    }

    function check_TheLossOfOneAgentIsNotPaidForAnother(uint56 first, uint56 second) public {
        books.payLoss(1, first);
        assert(books.payLoss(2, second) == second);
    }
}
