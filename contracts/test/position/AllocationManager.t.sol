// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {SafeCast} from "@openzeppelin/contracts/utils/math/SafeCast.sol";
import {AllocationManager} from "../../src/AllocationManager.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "../../src/interfaces/IAllocationManager.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

contract AllocationManagerTest is ProtocolTest {
    function test_ARegisteredAgentGetsTheTracksInitialAllocation() public {
        vm.expectEmit(address(allocations));
        emit IAllocationManager.AllocationCreated(agentId + 1, address(vault), 0, CAP);
        uint256 id = _register(owner);

        IAllocationManager.Allocation memory allocation = allocations.getAllocation(id);
        assertEq(allocation.agentId, id);
        assertEq(allocation.vault, address(vault));
        assertEq(allocation.trackId, 0);
        assertEq(allocation.cap, CAP);
        assertEq(allocation.used, 0);
        assertEq(allocation.status, uint8(IAllocationManager.AllocationStatus.Active));
        assertEq(allocation.createdAt, block.timestamp);
        assertEq(allocation.updatedAt, block.timestamp);
        assertEq(allocations.totalAgentCaps(address(vault)), 2 * CAP);
    }

    function test_APromotedAgentGetsTheNewTracksAllocationAndKeepsWhatItUses() public {
        _open(nvda, 10_000 * USDC);
        IVaultTrackRegistry.VaultTrackConfig memory policy = _policy();
        (policy.trackId, policy.initialAllocation) = (1, 5_000 * USDC);
        _setPolicy(policy);
        policy = _policy();
        (policy.minTrades, policy.evaluationPeriod, policy.promotionScore) = (0, 0, 0);
        _setPolicy(policy);
        skip(100);
        vm.expectEmit(address(allocations));
        emit IAllocationManager.AllocationCapUpdated(agentId, 1, CAP, 5_000 * USDC);
        agents.promoteAgent(agentId, 1);

        IAllocationManager.Allocation memory allocation = allocations.getAllocation(agentId);
        assertEq(allocation.trackId, 1);
        assertEq(allocation.cap, 5_000 * USDC);
        assertEq(allocation.used, 10_000 * USDC);
        assertEq(allocation.updatedAt, block.timestamp);
        assertEq(allocations.totalAgentCaps(address(vault)), 5_000 * USDC);
    }

    function test_ARemovedAllocationIsFinal() public {
        vm.expectEmit(address(allocations));
        emit IAllocationManager.AllocationStatusUpdated(agentId, 0, 2);
        _setStatus(IAgentRegistry.AgentStatus.Failed);
        assertEq(allocations.totalAgentCaps(address(vault)), 0);
        assertEq(allocations.getAllocation(agentId).status, uint8(IAllocationManager.AllocationStatus.Removed));

        bytes memory refusal = abi.encodeWithSelector(IAllocationManager.AllocationIsRemoved.selector, agentId);
        vm.prank(operator);
        vm.expectRevert(refusal);
        allocations.setAllocationStatus(agentId, 0);
        vm.startPrank(address(agents));
        allocations.onAgentRemoved(agentId);
        assertEq(allocations.totalAgentCaps(address(vault)), 0);
        vm.expectRevert(refusal);
        allocations.onAgentPromoted(agentId, address(vault), 0, 0);
    }

    function test_TheOperatorPausesAndResumes() public {
        vm.startPrank(operator);
        allocations.setAllocationStatus(agentId, 1);
        assertEq(allocations.totalAgentCaps(address(vault)), CAP);
        allocations.setAllocationStatus(agentId, 0);
        vm.expectRevert(abi.encodeWithSelector(IAllocationManager.InvalidAllocationStatus.selector, 3));
        allocations.setAllocationStatus(agentId, 3);
        vm.expectRevert(abi.encodeWithSelector(IAllocationManager.AllocationNotFound.selector, 9));
        allocations.setAllocationStatus(9, 1);
    }

    function test_AnUnknownAgentHasNoAllocation() public {
        bytes memory refusal = abi.encodeWithSelector(IAllocationManager.AllocationNotFound.selector, 9);
        vm.expectRevert(refusal);
        allocations.getAllocation(9);
        vm.expectRevert(refusal);
        allocations.allocationCap(9);
        vm.expectRevert(refusal);
        allocations.allocationUsed(9);
        vm.prank(address(router));
        vm.expectRevert(refusal);
        allocations.setAllocationUsedByRouter(9, 1);
        vm.startPrank(address(agents));
        vm.expectRevert(refusal);
        allocations.onAgentRemoved(9);
        vm.expectRevert(refusal);
        allocations.onAgentPromoted(9, address(vault), 0, 1);
    }

    function test_OneAllocationPerAgentInOneVault() public {
        vm.startPrank(address(agents));
        vm.expectRevert(abi.encodeWithSelector(IAllocationManager.AllocationAlreadyExists.selector, agentId));
        allocations.onAgentRegistered(agentId, address(vault), 0);
        vm.expectRevert(
            abi.encodeWithSelector(IAllocationManager.VaultMismatch.selector, agentId, address(vault), address(this))
        );
        allocations.onAgentPromoted(agentId, address(this), 0, 1);
    }

    function test_OnlyTheRegistryCallsItsHooks() public {
        bytes memory refusal = abi.encodeWithSelector(IAllocationManager.OnlyAgentRegistry.selector, address(this));
        vm.expectRevert(refusal);
        allocations.onAgentRegistered(7, address(vault), 0);
        vm.expectRevert(refusal);
        allocations.onAgentPromoted(agentId, address(vault), 0, 1);
        vm.expectRevert(refusal);
        allocations.onAgentRemoved(agentId);
    }

    function test_OnlyTheRouterWritesWhatIsUsed() public {
        vm.expectRevert(abi.encodeWithSelector(IAllocationManager.OnlyTradeRouter.selector, address(this)));
        allocations.setAllocationUsedByRouter(agentId, 1);

        vm.startPrank(address(router));
        allocations.setAllocationUsedByRouter(agentId, type(uint64).max);
        assertEq(allocations.allocationUsed(agentId), type(uint64).max);
        vm.expectRevert(abi.encodeWithSelector(SafeCast.SafeCastOverflowedUintDowncast.selector, 64, uint256(1) << 64));
        allocations.setAllocationUsedByRouter(agentId, uint256(1) << 64);
    }

    function test_TheAdminWiresIt() public {
        bytes memory refusal = abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, address(this), allocations.DEFAULT_ADMIN_ROLE()
        );
        vm.expectRevert(refusal);
        allocations.setAgentRegistry(address(1));
        vm.expectRevert(refusal);
        allocations.setTradeRouter(address(1));
        refusal = abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, address(this), allocations.OPERATOR_ROLE()
        );
        vm.expectRevert(refusal);
        allocations.setAllocationStatus(agentId, 1);

        vm.startPrank(admin);
        vm.expectRevert(IAllocationManager.ZeroAddress.selector);
        allocations.setAgentRegistry(address(0));
        vm.expectRevert(IAllocationManager.ZeroAddress.selector);
        allocations.setTradeRouter(address(0));
        vm.expectEmit(address(allocations));
        emit IAllocationManager.AgentRegistryUpdated(address(agents), address(1));
        allocations.setAgentRegistry(address(1));
        vm.expectEmit(address(allocations));
        emit IAllocationManager.TradeRouterUpdated(address(router), address(2));
        allocations.setTradeRouter(address(2));
        assertEq(allocations.agentRegistry(), address(1));
        assertEq(allocations.tradeRouter(), address(2));
        assertEq(allocations.vaultTrackRegistry(), address(tracks));

        vm.expectRevert(IAllocationManager.ZeroAddress.selector);
        this.deploy(address(0), address(tracks));
        vm.expectRevert(IAllocationManager.ZeroAddress.selector);
        this.deploy(admin, address(0));
    }

    /// @dev A call of its own: a creation that reverts after `expectRevert` would end the whole test as passed.
    function deploy(address owner, address trackRegistry) external {
        new AllocationManager(owner, trackRegistry);
    }
}
