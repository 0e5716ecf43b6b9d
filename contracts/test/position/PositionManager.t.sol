// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {PositionManager} from "../../src/PositionManager.sol";
import {MandateVault} from "../../src/MandateVault.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";
import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

contract PositionManagerTest is ProtocolTest {
    function test_TellsWhatItIsWiredTo() public view {
        assertEq(positions.agentRegistry(), address(agents));
        assertEq(positions.vaultTrackRegistry(), address(tracks));
        assertEq(positions.tradeRouter(), address(router));
        assertEq(positions.positionCount(), 0);
    }

    /// @dev A call of its own: a creation that reverts after `expectRevert` would end the whole test as passed.
    function deploy(address owner, address registry, address trackRegistry) external {
        new PositionManager(owner, registry, trackRegistry);
    }

    function test_RefusesToBeWiredToNothing() public {
        vm.expectRevert(IPositionManager.ZeroAddress.selector);
        this.deploy(address(0), address(agents), address(tracks));
        vm.expectRevert(IPositionManager.ZeroAddress.selector);
        this.deploy(admin, address(0), address(tracks));
        vm.expectRevert(IPositionManager.ZeroAddress.selector);
        this.deploy(admin, address(agents), address(0));
    }

    function test_TheAdminReplacesTheRouter() public {
        bytes memory refusal = abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, address(this), positions.DEFAULT_ADMIN_ROLE()
        );
        vm.expectRevert(refusal);
        positions.setTradeRouter(address(this));

        vm.startPrank(admin);
        vm.expectRevert(IPositionManager.ZeroAddress.selector);
        positions.setTradeRouter(address(0));
        vm.expectEmit(address(positions));
        emit IPositionManager.TradeRouterUpdated(address(router), address(this));
        positions.setTradeRouter(address(this));
        assertEq(positions.tradeRouter(), address(this));
    }

    function test_OnlyTheRouterWrites() public {
        bytes memory refusal = abi.encodeWithSelector(IPositionManager.OnlyTradeRouter.selector, address(this));
        IPositionManager.NewPosition memory entry;
        vm.expectRevert(refusal);
        positions.openPosition(entry);
        IPositionManager.Increase memory increase;
        vm.expectRevert(refusal);
        positions.increasePosition(increase);
        vm.expectRevert(refusal);
        positions.reducePosition(1, 1, 1);
        vm.expectRevert(refusal);
        positions.applyLadderExit(1, 0, 1, 1);
        vm.expectRevert(refusal);
        positions.applyPartialLadderExit(1, 0, 1, 1, 1, 1);
        vm.expectRevert(refusal);
        positions.recordDueExit(1, 0, 1);
        vm.expectRevert(refusal);
        positions.updateExitLadder(1, new IPositionManager.ExitRule[](0), address(vault), 0, false);
    }

    function test_AnUnknownPositionIsAnErrorInEveryGetter() public {
        _open(nvda, 1_000 * USDC);
        for (uint256 unknown = 0; unknown <= 2; unknown += 2) {
            bytes memory refusal = abi.encodeWithSelector(IPositionManager.PositionNotFound.selector, unknown);
            vm.expectRevert(refusal);
            positions.getPosition(unknown);
            vm.expectRevert(refusal);
            positions.getExitRules(unknown);
            vm.expectRevert(refusal);
            positions.getNextExitRule(unknown);
            vm.expectRevert(refusal);
            positions.realizedPnlUsdc(unknown);
            vm.expectRevert(refusal);
            positions.positionStateOf(unknown);
        }
    }

    function test_AClosedPositionKeepsItsRecord() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        uint256 entry = positions.getPosition(id).entryPriceUsdc;
        _setPrice(nvda, 120 * USD);
        _submit(_reduceIntent(id, 10_000));

        IPositionManager.Position memory position = positions.getPosition(id);
        assertEq(position.entryPriceUsdc, entry);
        assertEq(position.vault, address(vault));
        assertEq(position.token, address(nvda));
        assertGt(position.realizedPnlUsdc, 0);
        assertEq(positions.getExitRules(id).length, 3);
        assertEq(positions.getNextExitRule(id).triggerBps, 1_000);
        assertEq(positions.agentTokenBalance(agentId, address(nvda)), 0);
    }

    function test_ALadderThatHasFiredToItsEndHasNoNextRule() public {
        IPositionManager.ExitRule[] memory one = _ladder(_stop(-500, 10_000));
        uint256 id = _open(nvda, 1_000 * USDC);
        _submit(_updateIntent(id, one));
        _setPrice(nvda, 90 * USD);
        _exit(id);
        vm.expectRevert(abi.encodeWithSelector(IPositionManager.NoPendingExitRule.selector, id));
        positions.getNextExitRule(id);
    }

    function test_ListsAnAgentsOpenPositions() public {
        uint256 a = _open(nvda, 1_000 * USDC);
        uint256 b = _open(tsla, 1_000 * USDC);
        uint256[] memory ids = positions.getOpenPositionIds(agentId);
        assertEq(ids.length, 2);
        assertEq(ids[0], a);
        assertEq(ids[1], b);
        assertEq(positions.openPositionId(agentId, address(nvda)), a);
        assertEq(positions.openPositionId(agentId, address(tsla)), b);
        assertEq(positions.openPositionId(agentId, address(usdc)), 0);
        assertEq(positions.agentTokenBalance(agentId, address(tsla)), positions.getPosition(b).tokenAmount);
        assertEq(positions.agentTokenBalance(agentId, address(usdc)), 0);

        _submit(_reduceIntent(a, 10_000));
        ids = positions.getOpenPositionIds(agentId);
        assertEq(ids.length, 1);
        assertEq(ids[0], b);
        assertEq(positions.positionsOpenedByAgent(agentId), 2);
        assertEq(positions.positionsClosedByAgent(agentId), 1);
        assertEq(positions.getOpenPositionIds(99).length, 0);
    }

    function test_AnAgentMayHoldManyTokens() public {
        for (uint256 i; i < 12; ++i) {
            StockToken token = _newToken("MNY", 18);
            _list(token, 10 * USD);
            assertEq(_open(token, 100 * USDC), i + 1);
            assertEq(positions.openPositionId(agentId, address(token)), i + 1);
        }
        _submit(_reduceIntent(3, 10_000));
        _submit(_reduceIntent(12, 10_000));
        uint256[] memory ids = positions.getOpenPositionIds(agentId);
        assertEq(ids.length, 10);
        for (uint256 i; i < ids.length; ++i) {
            assertEq(positions.openPositionId(agentId, positions.getPosition(ids[i]).token), ids[i]);
        }
    }

    function test_TheLedgerOfATokenSumsOverVaults() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        MandateVault second = new MandateVault(admin, address(usdc), "Second", "2", "second", address(tokens));
        vm.startPrank(admin);
        second.setTradeRouter(address(router));
        second.enableToken(address(nvda));
        tracks.registerVault(address(second));
        vm.stopPrank();
        vm.prank(address(router));
        second.recordReceived(address(nvda), 7e18);
        assertEq(positions.totalTokenLedger(address(nvda)), positions.getPosition(id).tokenAmount + 7e18);
        assertEq(positions.totalTokenLedger(address(tsla)), 0);
    }
}
