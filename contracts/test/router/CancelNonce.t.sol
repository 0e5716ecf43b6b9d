// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "../../src/interfaces/IAllocationManager.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {ProtocolTest} from "./ProtocolTest.sol";

contract CancelNonceTest is ProtocolTest {
    function test_TheSignerVoidsWhatItSigned() public {
        ITradeRouter.PositionIntent memory intent = _openIntent(nvda, 1_000 * USDC);
        vm.expectEmit(address(router));
        emit ITradeRouter.NonceCancelled(agentId, 0, vm.addr(signerKey));
        vm.prank(vm.addr(signerKey));
        router.cancelNonce(agentId, 0);
        assertEq(router.nonces(agentId), 1);
        _refuse(intent, abi.encodeWithSelector(ITradeRouter.InvalidNonce.selector, 1, 0));
    }

    function test_TheOwnerVoidsWhatTheSignerSigned() public {
        vm.prank(owner);
        router.cancelNonce(agentId, 0);
        assertEq(router.nonces(agentId), 1);
    }

    function test_NobodyElseDoes() public {
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.NotOwnerOrSigner.selector, agentId, address(this)));
        router.cancelNonce(agentId, 0);
    }

    function test_OnlyTheNextNonceIsVoided() public {
        vm.startPrank(owner);
        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.InvalidNonce.selector, 0, 1));
        router.cancelNonce(agentId, 1);
        vm.expectRevert(abi.encodeWithSelector(IAgentRegistry.AgentNotFound.selector, 9));
        router.cancelNonce(9, 0);
    }

    function test_OnlyTheRouterWritesTheLedger() public {
        bytes memory refusal = abi.encodeWithSelector(IAllocationManager.OnlyTradeRouter.selector, address(this));
        vm.expectRevert(refusal);
        allocations.authorize(agentId, 0, 0, "", true);
        vm.expectRevert(refusal);
        allocations.cancelNonce(agentId, 0);
        vm.expectRevert(refusal);
        allocations.bookBuy(agentId, address(vault), 0, 1, address(0));
        vm.expectRevert(refusal);
        allocations.bookSale(agentId, IAllocationManager.SaleFigures(1, 1, 1, 0, 0));
        vm.expectRevert(refusal);
        allocations.bookWaste(agentId, 1);
    }
}
