// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Pausable} from "@openzeppelin/contracts/utils/Pausable.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {ProtocolTest} from "./ProtocolTest.sol";

/// @notice The table of pauses, cell by cell
contract PausesTest is ProtocolTest {
    uint256 private id;

    function setUp() public override {
        super.setUp();
        id = _open(nvda, 10_000 * USDC);
    }

    // Registry paused

    function test_RegistryPaused_RefusesOpen() public {
        _pauseRegistry();
        _refuse(_openIntent(tsla, 1_000 * USDC), abi.encodeWithSelector(ITradeRouter.RegistryPaused.selector));
    }

    function test_RegistryPaused_RefusesAdd() public {
        _pauseRegistry();
        _refuse(_addIntent(id, 1_000 * USDC), abi.encodeWithSelector(ITradeRouter.RegistryPaused.selector));
    }

    function test_RegistryPaused_AllowsReduce() public {
        _pauseRegistry();
        assertGt(_submit(_reduceIntent(id, 5_000)), 0);
    }

    function test_RegistryPaused_AllowsExecuteExit() public {
        _pauseRegistry();
        _setPrice(nvda, 90 * USD);
        assertGt(_exit(id), 0);
    }

    function test_RegistryPaused_AllowsUpdateExitLadder() public {
        _pauseRegistry();
        _submit(_updateIntent(id, _ladder(_stop(-300, 10_000))));
        assertEq(positions.getExitRules(id).length, 1);
    }

    function test_RegistryPaused_AllowsForceClose() public {
        _setStatus(IAgentRegistry.AgentStatus.Suspended);
        _pauseRegistry();
        vm.prank(operator);
        router.forceClose(id);
        assertEq(positions.getPosition(id).tokenAmount, 0);
    }

    function test_RegistryPaused_RefusesRegistration() public {
        _pauseRegistry();
        vm.prank(admin);
        vm.expectRevert(Pausable.EnforcedPause.selector);
        agents.registerAgent(owner, address(vault), "Late", "ipfs://late", owner, false, 0);
    }

    // Trading paused

    function test_TradingPaused_RefusesOpen() public {
        _pauseTrading(true);
        _refuse(_openIntent(tsla, 1_000 * USDC), abi.encodeWithSelector(IMandateVault.TradingPaused.selector));
    }

    function test_TradingPaused_RefusesAdd() public {
        _pauseTrading(true);
        _refuse(_addIntent(id, 1_000 * USDC), abi.encodeWithSelector(IMandateVault.TradingPaused.selector));
    }

    function test_TradingPaused_RefusesReduce() public {
        _pauseTrading(true);
        _refuse(_reduceIntent(id, 1_000), abi.encodeWithSelector(IMandateVault.TradingPaused.selector));
    }

    function test_TradingPaused_RefusesExecuteExit() public {
        _setPrice(nvda, 90 * USD);
        _pauseTrading(true);
        vm.expectRevert(IMandateVault.TradingPaused.selector);
        router.executeExit(id);
    }

    function test_TradingPaused_AllowsUpdateExitLadder() public {
        _pauseTrading(true);
        _submit(_updateIntent(id, _ladder(_stop(-300, 10_000))));
        assertEq(positions.getExitRules(id).length, 1);
    }

    function test_TradingPaused_AllowsForceClose() public {
        _setStatus(IAgentRegistry.AgentStatus.Suspended);
        _pauseTrading(true);
        vm.prank(operator);
        router.forceClose(id);
        assertEq(positions.getPosition(id).tokenAmount, 0);
    }

    function test_TradingPaused_AllowsRegistration() public {
        _pauseTrading(true);
        assertEq(_register(owner), agentId + 1);
    }

    function test_AResumedVaultTradesAgain() public {
        _pauseTrading(true);
        _pauseTrading(false);
        assertGt(_submit(_reduceIntent(id, 5_000)), 0);
    }
}
