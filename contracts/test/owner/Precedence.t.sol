// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {StockToken} from "../../src/embedded/StockToken.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "../../src/interfaces/IAllocationManager.sol";
import {IOwnerControls} from "../../src/interfaces/IOwnerControls.sol";
import {ITradePolicy} from "../../src/interfaces/ITradePolicy.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {OwnerTest} from "./OwnerTest.sol";

/// @notice The table of docs/decisions/owner.md "Precedence": a test per row. The columns are a buy, a reduce,
/// a due exit, a sale after a close all, a tighter ladder, a looser ladder.
contract PrecedenceTest is OwnerTest {
    StockToken private amd;
    uint256 private dueId;
    uint256 private healthyId;

    function setUp() public override {
        super.setUp();
        amd = _token("AMD", 100 * USD, POOL_DEPTH);
        skip(1);
        dueId = _open(nvda, 5_000 * USDC);
        healthyId = _open(tsla, 5_000 * USDC);
        _setPrice(nvda, 91 * USD);
    }

    function test_NothingIsStopped() public {
        _expectRow("yyyyyy");
    }

    function test_RegistryPaused() public {
        _pauseRegistry();
        _expectRow("-yyyyy");
    }

    function test_VaultTradingPaused() public {
        _pauseTrading(true);
        _expectRow("----yy");
    }

    function test_AgentSuspended() public {
        _setStatus(IAgentRegistry.AgentStatus.Suspended);
        _expectRow("-yyyyy");
    }

    function test_AgentFailed() public {
        _setStatus(IAgentRegistry.AgentStatus.Failed);
        _expectRow("-yyy--");
    }

    function test_TrackInactive() public {
        IVaultTrackRegistry.VaultTrackConfig memory config = _policy();
        config.active = false;
        _setPolicy(config);
        _expectRow("-yyyyy");
    }

    function test_AllocationPaused() public {
        vm.prank(operator);
        allocations.setAllocationStatus(agentId, uint8(IAllocationManager.AllocationStatus.Paused));
        _expectRow("-yyyyy");
    }

    function test_TrackLimitExceeded() public {
        IVaultTrackRegistry.VaultTrackConfig memory config = _policy();
        config.maxTradeSizeBps = 1;
        _setPolicy(config);
        _expectRow("-yyyyy");
    }

    function test_MandateLimitExceeded() public {
        IOwnerControls.Mandate memory mandate = _mandate(TRADE);
        mandate.maxExposureUsdc = 1;
        _setMandate(mandate);
        _expectRow("-yyyyy");
    }

    function test_MandateExpired() public {
        IOwnerControls.Mandate memory mandate = _mandate(TRADE);
        mandate.validUntil = block.timestamp - 1;
        _setMandate(mandate);
        _expectRow("-yyyyy");
    }

    function test_MandateReduceOnly() public {
        _setMandate(_mandate(REDUCE_ONLY));
        _expectRow("-yyyyy");
    }

    function test_MandateStopped() public {
        _setMandate(_mandate(STOPPED));
        _expectRow("-yyyy-");
    }

    function test_OwnerClosesAll() public {
        _closeAll();
        _expectRow("-yyyyy");
    }

    function test_PriceStale() public {
        skip(2 hours);
        _expectRow("----yy");
    }

    function test_PolicyRefusesThePool() public {
        ITradePolicy.Limits memory limits = _wideLimits();
        limits.maxSpotDeviationBps = 100;
        _setLimits(limits);
        market.moveTo(address(tsla), TSLA_PRICE * 9_800 / 10_000);
        market.moveTo(address(nvda), 91 * USD * 9_800 / 10_000);
        market.moveTo(address(amd), 98 * USD);
        _expectRow("----yy");
    }

    /// @dev Everything that stops a buy at once: the first in order is the error.
    function test_TheFirstInOrderIsTheError() public {
        IOwnerControls.Mandate memory mandate = _mandate(STOPPED);
        (mandate.maxExposureUsdc, mandate.validUntil) = (1, block.timestamp - 1);
        _setMandate(mandate);
        _setStatus(IAgentRegistry.AgentStatus.Suspended);
        _pauseTrading(true);
        _pauseRegistry();
        IVaultTrackRegistry.VaultTrackConfig memory config = _policy();
        config.active = false;
        _setPolicy(config);

        _refuseBuy(abi.encodeWithSelector(ITradeRouter.RegistryPaused.selector));
        vm.prank(operator);
        agents.unpause();
        _refuseBuy(abi.encodeWithSelector(ITradeRouter.AgentNotTradable.selector, agentId));
        _setStatus(IAgentRegistry.AgentStatus.Active);
        _refuseBuy(
            abi.encodeWithSelector(ITradeRouter.MandateStopsBuying.selector, agentId, STOPPED, mandate.validUntil)
        );
        (mandate.mode, mandate.validUntil) = (TRADE, 0);
        _setMandate(mandate);
        _refuseBuy(abi.encodeWithSignature("TradingPaused()"));
        _pauseTrading(false);
        _refuseBuy(abi.encodeWithSelector(ITradeRouter.VaultTrackNotActive.selector, address(vault), 0));
        (config.active, config.maxTradeSizeBps) = (true, 1);
        _setPolicy(config);
        uint256 max = vault.totalAssets() / 10_000;
        _refuseBuy(abi.encodeWithSelector(ITradeRouter.ExceedsMaxTradeSize.selector, 1_000 * USDC, max));
        _setPolicy(_policy());
        _refuseBuy(abi.encodeWithSelector(IOwnerControls.ExceedsMandateExposure.selector, agentId, 11_000 * USDC, 1));
        skip(2 hours);
        _refuseBuy(abi.encodeWithSelector(IOwnerControls.ExceedsMandateExposure.selector, agentId, 11_000 * USDC, 1));
    }

    /// @dev Whatever is stopped, an owner's message is not.
    function test_NothingStopsAnOwnersMessage() public {
        _pauseRegistry();
        _pauseTrading(true);
        _setStatus(IAgentRegistry.AgentStatus.Failed);
        for (uint256 kind; kind <= uint256(type(Message).max); ++kind) {
            _relay(_callOf(Message(kind), _nonce(), _soon(), ownerKey));
        }
        _relay(_acceptCall(vm.addr(newSignerKey), 0, _soon(), newOwnerKey));
    }

    function _refuseBuy(bytes memory error) private {
        _refuse(_openIntent(amd, 1_000 * USDC), error);
    }

    function _expectRow(bytes memory row) private {
        assertEq(_can(0), row[0] == "y", "buy");
        assertEq(_can(1), row[1] == "y", "reduce");
        assertEq(_can(2), row[2] == "y", "due exit");
        assertEq(_can(3), row[3] == "y", "close all");
        assertEq(_can(4), row[4] == "y", "tighter ladder");
        assertEq(_can(5), row[5] == "y", "looser ladder");
    }

    function _can(uint256 column) private returns (bool success) {
        uint256 snapshot = vm.snapshotState();
        if (column == 3) _closeAll();
        uint256 id = column == 2 ? dueId : healthyId;
        uint256 held = positions.getPosition(id).tokenAmount;
        bytes memory call = _callIn(column);
        vm.prank(executor);
        (success,) = address(router).call(call);
        // A due exit that the policy refuses is recorded, not sold.
        if (column == 2 || column == 3) success = success && positions.getPosition(id).tokenAmount < held;
        vm.revertToState(snapshot);
    }

    function _callIn(uint256 column) private view returns (bytes memory) {
        if (column == 0) {
            ITradeRouter.PositionIntent memory open = _openIntent(amd, 1_000 * USDC);
            return abi.encodeCall(router.openPosition, (open, _sign(signerKey, _digest(open))));
        }
        if (column == 1) {
            ITradeRouter.ReducePositionIntent memory reduce = _reduceIntent(healthyId, 5_000);
            return abi.encodeCall(router.reducePosition, (reduce, _sign(signerKey, _digest(reduce))));
        }
        if (column == 2) return abi.encodeCall(router.executeExit, (dueId));
        if (column == 3) return abi.encodeCall(router.executeExit, (healthyId));
        ITradeRouter.UpdateExitLadderIntent memory update =
            _updateIntent(healthyId, _ladder(_stop(column == 4 ? int256(-500) : -1_500, 10_000)));
        return abi.encodeCall(router.updateExitLadder, (update, _sign(signerKey, digests.hashUpdateExitLadder(update))));
    }
}
