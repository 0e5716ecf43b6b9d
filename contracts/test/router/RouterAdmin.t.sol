// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {TradeRouter} from "../../src/TradeRouter.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {ProtocolTest} from "./ProtocolTest.sol";

contract RouterAdminTest is ProtocolTest {
    function test_TellsWhatItIsWiredTo() public view {
        assertEq(router.usdc(), address(usdc));
        assertEq(router.agentRegistry(), address(agents));
        assertEq(router.allocationManager(), address(allocations));
        assertEq(router.positionManager(), address(positions));
        assertEq(router.vaultTrackRegistry(), address(tracks));
        assertEq(router.swapAdapter(), address(adapter));
        assertFalse(router.tradeInProgress());
    }

    /// @dev A call of its own: a creation that reverts after `expectRevert` would end the whole test as passed.
    function deploy(address[7] calldata wired) external {
        new TradeRouter(wired[0], wired[1], wired[2], wired[3], wired[4], wired[5], wired[6]);
    }

    function test_RefusesToBeWiredToNothing() public {
        address[7] memory parts = [
            admin,
            address(usdc),
            address(agents),
            address(allocations),
            address(positions),
            address(tracks),
            address(tradePolicy)
        ];
        for (uint256 i; i < parts.length; ++i) {
            address part = parts[i];
            parts[i] = address(0);
            vm.expectRevert(ITradeRouter.ZeroAddress.selector);
            this.deploy(parts);
            parts[i] = part;
        }
    }

    function test_TheAdminSetsTheBounty() public {
        vm.startPrank(admin);
        vm.expectEmit(address(router));
        emit ITradeRouter.KeeperBountyUpdated(10_000, 7 * USDC);
        router.setKeeperBounty(10_000, 7 * USDC);
        assertEq(router.keeperBountyBps(), 10_000);
        assertEq(router.maxKeeperBounty(), 7 * USDC);

        vm.expectRevert(abi.encodeWithSelector(ITradeRouter.BpsOutOfRange.selector, 10_001));
        router.setKeeperBounty(10_001, 0);
    }

    function test_TheAdminReplacesTheAdapter() public {
        vm.startPrank(admin);
        vm.expectEmit(address(router));
        emit ITradeRouter.SwapAdapterUpdated(address(adapter), address(this));
        router.setSwapAdapter(address(this));
        assertEq(router.swapAdapter(), address(this));
        assertEq(router.keeperBountyBps(), 10);

        vm.expectRevert(ITradeRouter.ZeroAddress.selector);
        router.setSwapAdapter(address(0));
    }

    function test_TheAdminReplacesThePolicy() public {
        vm.startPrank(admin);
        vm.expectEmit(address(router));
        emit ITradeRouter.TradePolicyUpdated(address(tradePolicy), address(this));
        router.setTradePolicy(address(this));
        assertEq(router.tradePolicy(), address(this));

        vm.expectRevert(ITradeRouter.ZeroAddress.selector);
        router.setTradePolicy(address(0));
    }

    function test_NobodyElseSetsAnything() public {
        bytes memory refusal = abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, address(this), router.DEFAULT_ADMIN_ROLE()
        );
        vm.expectRevert(refusal);
        router.setKeeperBounty(0, 0);
        vm.expectRevert(refusal);
        router.setSwapAdapter(address(1));
        vm.expectRevert(refusal);
        router.setTradePolicy(address(1));
    }
}
