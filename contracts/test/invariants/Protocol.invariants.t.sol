// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Vm} from "forge-std/Vm.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

/// @notice Three agents, two tokens, and everybody who may do something to them, in any order
contract ProtocolInvariants is ProtocolTest {
    uint256 private constant AGENTS = 3;

    struct Flow {
        uint256 deposited;
        uint256 withdrawn;
        uint256 toStrangers;
        uint256 overpaidBounties;
    }

    uint256[] private team;
    mapping(uint256 agent => uint256) private accepted;
    mapping(bytes32 action => uint256) private done;
    Flow private flow;

    /// @dev Looks at every transfer of USDC out of the vault that the action makes. `payee` may be paid besides the
    /// adapter.
    modifier watched(address payee) {
        vm.recordLogs();
        _;
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i; i < logs.length; ++i) {
            if (logs[i].emitter == address(usdc) && logs[i].topics[0] == IERC20.Transfer.selector) {
                _watch(logs[i], payee);
            }
        }
    }

    function setUp() public override {
        super.setUp();
        flow.deposited = DEPOSITED;
        team.push(agentId);
        for (uint256 i = 1; i < AGENTS; ++i) {
            team.push(_register(vm.addr(signerKey + i)));
        }

        // What trades is tried more often than what stops trading.
        bytes4[] memory actions = new bytes4[](22);
        actions[0] = this.open.selector;
        actions[1] = this.open.selector;
        actions[2] = this.open.selector;
        actions[3] = this.open.selector;
        actions[4] = this.add.selector;
        actions[5] = this.add.selector;
        actions[6] = this.reduce.selector;
        actions[7] = this.reduce.selector;
        actions[8] = this.updateLadder.selector;
        actions[9] = this.updateLadder.selector;
        actions[10] = this.movePrice.selector;
        actions[11] = this.movePrice.selector;
        actions[12] = this.executeExit.selector;
        actions[13] = this.executeExit.selector;
        actions[14] = this.executeExit.selector;
        actions[15] = this.forceClose.selector;
        actions[16] = this.suspend.selector;
        actions[17] = this.pauseTrading.selector;
        actions[18] = this.pauseRegistry.selector;
        actions[19] = this.deposit.selector;
        actions[20] = this.withdraw.selector;
        actions[21] = this.nextDay.selector;
        targetContract(address(this));
        targetSelector(FuzzSelector({addr: address(this), selectors: actions}));
    }

    // Actions: each leaves the state alone when the protocol refuses it

    function open(uint256 agent, uint256 token, uint256 amount, uint256 ladder) external watched(address(0)) {
        uint256 key = _as(agent);
        ITradeRouter.PositionIntent memory intent = _openIntent(_token(token), bound(amount, 1, 21_000 * USDC));
        intent.exits = _someLadder(ladder);
        intent.maxSlippageBps = uint16(bound(amount, 100, 2_000));
        bytes memory signature = _sign(key, router.hashOpenPosition(intent));
        _try("open", abi.encodeCall(router.openPosition, (intent, signature)));
    }

    function add(uint256 position, uint256 amount) external watched(address(0)) {
        uint256 id = _position(position);
        uint256 key = _asHolderOf(id);
        ITradeRouter.AddToPositionIntent memory intent = _addIntent(id, bound(amount, 1, 21_000 * USDC));
        bytes memory signature = _sign(key, router.hashAddToPosition(intent));
        _try("add", abi.encodeCall(router.addToPosition, (intent, signature)));
    }

    function reduce(uint256 position, uint16 exitBps) external watched(address(0)) {
        uint256 id = _position(position);
        uint256 key = _asHolderOf(id);
        ITradeRouter.ReducePositionIntent memory intent =
            _reduceIntent(id, exitBps % 4 == 0 ? 10_000 : uint16(bound(exitBps, 1, 10_000)));
        bytes memory signature = _sign(key, router.hashReducePosition(intent));
        _try("reduce", abi.encodeCall(router.reducePosition, (intent, signature)));
    }

    function updateLadder(uint256 position, uint256 ladder) external watched(address(0)) {
        uint256 id = _position(position);
        uint256 key = _asHolderOf(id);
        ITradeRouter.UpdateExitLadderIntent memory intent = _updateIntent(id, _someLadder(ladder));
        bytes memory signature = _sign(key, router.hashUpdateExitLadder(intent));
        _try("updateLadder", abi.encodeCall(router.updateExitLadder, (intent, signature)));
    }

    function movePrice(uint256 token, uint256 bps) external watched(address(0)) {
        StockToken moved = _token(token);
        (uint256 price,,) = oracle.peekPrice(address(moved));
        price = bound(price * bound(bps, 8_500, 11_800) / 10_000, USD, 100_000 * USD);
        _setPrice(moved, price);
        ++done["movePrice"];
    }

    function executeExit(uint256 position) external watched(keeper) {
        uint256 id = _position(position);
        vm.prank(keeper);
        (bool success,) = address(router).call(abi.encodeCall(router.executeExit, (id)));
        if (success) ++done["executeExit"];
    }

    function forceClose(uint256 position) external watched(address(0)) {
        uint256 id = _position(position);
        vm.prank(operator);
        (bool success,) = address(router).call(abi.encodeCall(router.forceClose, (id)));
        if (success) ++done["forceClose"];
    }

    function suspend(uint256 agent, uint256 seed) external watched(address(0)) {
        uint256 id = team[agent % AGENTS];
        IAgentRegistry.AgentStatus status =
            seed % 4 == 0 ? IAgentRegistry.AgentStatus.Suspended : IAgentRegistry.AgentStatus.Active;
        vm.prank(operator);
        (bool success,) = address(agents).call(abi.encodeCall(agents.setAgentStatus, (id, uint8(status))));
        if (success) ++done["suspend"];
    }

    function pauseTrading(uint256 seed) external watched(address(0)) {
        _pauseTrading(seed % 4 == 0);
        ++done["pauseTrading"];
    }

    function pauseRegistry(uint256 seed) external watched(address(0)) {
        bool paused = seed % 4 == 0;
        if (paused == agents.paused()) return;
        vm.prank(operator);
        if (paused) agents.pause();
        else agents.unpause();
        ++done["pauseRegistry"];
    }

    function deposit(uint256 amount) external watched(address(0)) {
        if (vault.maxDeposit(investor) == 0) return;
        amount = bound(amount, 1, 100_000 * USDC);
        _deposit(amount);
        flow.deposited += amount;
        ++done["deposit"];
    }

    function withdraw(uint256 amount) external watched(investor) {
        uint256 max = vault.maxWithdraw(investor);
        if (max == 0) return;
        amount = bound(amount, 1, max / 50 + 1);
        vm.prank(investor);
        vault.withdraw(amount, investor, investor);
        flow.withdrawn += amount;
        ++done["withdraw"];
    }

    function nextDay(uint256 seed) external watched(address(0)) {
        vm.warp((_today() + 1) * DAY + seed % DAY);
        // Now and then a day starts without prices.
        if (seed % 8 != 0) {
            _repeatPrice(nvda);
            _repeatPrice(tsla);
        }
        ++done["nextDay"];
    }

    // What always holds

    function invariant_NoLedgerExceedsWhatTheVaultHolds() public view {
        _checkLedger(nvda);
        _checkLedger(tsla);
    }

    function invariant_UsedIsTheCostOfTheOpenPositions() public view {
        for (uint256 i; i < AGENTS; ++i) {
            uint256[] memory ids = positions.getOpenPositionIds(team[i]);
            uint256 cost;
            for (uint256 j; j < ids.length; ++j) {
                cost += positions.getPosition(ids[j]).usdcCostBasis;
            }
            assertEq(allocations.allocationUsed(team[i]), cost);
        }
    }

    function invariant_NoncesCountTheAcceptedIntents() public view {
        for (uint256 i; i < AGENTS; ++i) {
            assertEq(router.nonces(team[i]), accepted[team[i]]);
        }
    }

    function invariant_AnOpenPositionHasAPendingRule() public view {
        uint256 count = positions.positionCount();
        for (uint256 id = 1; id <= count; ++id) {
            IPositionManager.Position memory position = positions.getPosition(id);
            if (position.status == uint8(IPositionManager.PositionStatus.Closed)) {
                assertEq(position.tokenAmount, 0);
                assertEq(position.usdcCostBasis, 0);
                continue;
            }
            IPositionManager.ExitRule[] memory rules = positions.getExitRules(id);
            assertLt(position.nextRuleIndex, rules.length);
            assertLe(rules.length, 5);
            assertEq(rules[rules.length - 1].exitBps, 10_000);
            assertEq(positions.openPositionId(position.agentId, position.token), id);
        }
    }

    function invariant_UsdcLeavesTheVaultOnlyToTheAdapterAKeeperOrAShareHolder() public view {
        assertEq(flow.toStrangers, 0);
        assertEq(flow.overpaidBounties, 0);
        assertEq(usdc.balanceOf(address(adapter)), 0);
        assertEq(usdc.balanceOf(address(router)), 0);
        assertEq(nvda.balanceOf(address(adapter)), 0);
        assertEq(tsla.balanceOf(address(adapter)), 0);
    }

    /// @dev Idle USDC is what was deposited and realized, less what was withdrawn and what is invested at cost.
    function invariant_EveryUnitOfUsdcIsAccountedFor() public view {
        int256 realized;
        uint256 used;
        for (uint256 i; i < AGENTS; ++i) {
            realized += router.lifetimeRealizedPnlUsdc(team[i]);
            used += allocations.allocationUsed(team[i]);
        }
        assertEq(
            int256(usdc.balanceOf(address(vault))),
            int256(flow.deposited) - int256(flow.withdrawn) + realized - int256(used)
        );
    }

    function invariant_ProfitIsTheSameByPositionAndByAgent() public view {
        int256 byAgent;
        int256 byPosition;
        for (uint256 i; i < AGENTS; ++i) {
            byAgent += router.lifetimeRealizedPnlUsdc(team[i]);
        }
        uint256 count = positions.positionCount();
        for (uint256 id = 1; id <= count; ++id) {
            byPosition += positions.realizedPnlUsdc(id);
        }
        assertEq(byAgent, byPosition);
    }

    /// @dev A way through all actions: what the fuzzer composes can be done at all.
    function test_EveryActionCanSucceed() public {
        this.open(0, 0, 10_000 * USDC, 0);
        this.open(1, 1, 10_000 * USDC, 0);
        this.add(2, 1_000 * USDC);
        this.updateLadder(2, 1);
        this.reduce(1, 5_001);
        this.deposit(1_000 * USDC);
        this.withdraw(1_000 * USDC);
        this.movePrice(0, 11_800);
        this.executeExit(2);
        this.suspend(1, 0);
        this.forceClose(1);
        this.pauseTrading(0);
        this.pauseRegistry(0);
        this.nextDay(1);
        bytes32[13] memory names = [
            bytes32("open"),
            "add",
            "reduce",
            "updateLadder",
            "movePrice",
            "executeExit",
            "forceClose",
            "suspend",
            "pauseTrading",
            "pauseRegistry",
            "deposit",
            "withdraw",
            "nextDay"
        ];
        for (uint256 i; i < names.length; ++i) {
            assertGt(done[names[i]], 0, string(abi.encodePacked(names[i])));
        }
    }

    function _checkLedger(StockToken token) private view {
        uint256 sum;
        for (uint256 i; i < AGENTS; ++i) {
            sum += positions.agentTokenBalance(team[i], address(token));
        }
        assertEq(sum, positions.totalTokenLedger(address(token)));
        assertEq(sum, vault.tokenLedger(address(token)));
        assertLe(sum, token.balanceOf(address(vault)));
    }

    function _watch(Vm.Log memory log, address payee) private {
        address from = address(uint160(uint256(log.topics[1])));
        address to = address(uint160(uint256(log.topics[2])));
        if (from != address(vault) || to == address(adapter)) return;
        if (to != payee) ++flow.toStrangers;
        if (to == keeper && abi.decode(log.data, (uint256)) > router.maxKeeperBounty()) ++flow.overpaidBounties;
    }

    function _try(bytes32 action, bytes memory call) private {
        vm.prank(executor);
        (bool success,) = address(router).call(call);
        if (!success) return;
        ++accepted[agentId];
        ++done[action];
    }

    function _as(uint256 agent) private returns (uint256 key) {
        agent %= AGENTS;
        agentId = team[agent];
        return signerKey + agent;
    }

    function _asHolderOf(uint256 position) private returns (uint256 key) {
        uint256 holder = position <= positions.positionCount() ? positions.getPosition(position).agentId : team[0];
        return _as(holder - team[0]);
    }

    /// @dev Mostly one that is open; closed ones and strangers happen too.
    function _position(uint256 seed) private view returns (uint256) {
        uint256 count = positions.positionCount();
        if (seed % 8 != 0) {
            for (uint256 i; i < count; ++i) {
                uint256 id = 1 + (seed % count + i) % count;
                if (positions.getPosition(id).tokenAmount != 0) return id;
            }
        }
        return 1 + seed % (count + 1);
    }

    function _token(uint256 seed) private view returns (StockToken) {
        return seed % 2 == 0 ? nvda : tsla;
    }

    function _repeatPrice(StockToken token) private {
        (uint256 price,,) = oracle.peekPrice(address(token));
        _setOraclePrice(token, price);
    }

    function _someLadder(uint256 seed) private pure returns (IPositionManager.ExitRule[] memory) {
        int256 near = int256(100 + seed % 1_000);
        uint16 share = uint16(1 + (seed >> 16) % 10_000);
        if (seed % 4 == 0) return _threeRules();
        if (seed % 4 == 1) return _ladder(_take(near, share), _stop(-near, 10_000));
        if (seed % 4 == 2) return _ladder(_stop(-near, share), _take(near, share), _stop(-2 * near, 10_000));
        return _ladder(_stop(-near, 10_000));
    }
}
