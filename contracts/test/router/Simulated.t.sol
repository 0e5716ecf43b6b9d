// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {StockToken} from "../../src/embedded/StockToken.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {ProtocolTest} from "./ProtocolTest.sol";

/// @notice Trades on paper: the same rules and figures, and nothing moves
contract SimulatedTest is ProtocolTest {
    uint8 private constant SIMULATED = uint8(IVaultTrackRegistry.CapitalMode.Simulated);
    uint8 private constant REAL = uint8(IVaultTrackRegistry.CapitalMode.Real);

    uint256 private realAgent;

    function setUp() public override {
        super.setUp();
        realAgent = agentId;
        vm.prank(admin);
        tracks.setVaultTrackCapitalMode(address(vault), 0, SIMULATED);
        agentId = _register(vm.addr(signerKey));
    }

    /// @dev The service charges the agent's gas budgets with as much (`gas-of-agents`).
    /// forge-config: default.isolate = true
    function test_EachPositionOnPaperAddsToATradeWhatTheServiceCharges() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        skip(1);
        _submit(_reduceIntent(id, 1_000));
        _submit(_reduceIntent(id, 1_000));
        uint256 alone = vm.lastCallGas().gasTotalUsed;
        for (uint256 i; i < 8; ++i) {
            StockToken token = _newToken("MORE", 18);
            _list(token, 100 * USD);
            _open(token, 100 * USDC);
        }
        _submit(_reduceIntent(id, 1_000));
        uint256 added = (vm.lastCallGas().gasTotalUsed - alone) / 8;
        assertGt(added, 12_000);
        assertLe(added, 16_000);
    }

    function test_AnAgentKeepsTheModeThatItEnteredWith() public view {
        assertEq(allocations.capitalModeOf(agentId), SIMULATED);
        assertEq(allocations.capitalModeOf(realAgent), REAL);
        assertEq(allocations.capitalModeOf(agentId), SIMULATED);
        assertEq(tracks.capitalModeOf(address(vault), 0), SIMULATED);
        assertEq(allocations.totalAgentCaps(address(vault)), CAP);
    }

    function test_NothingMovesForAPosition() public {
        vm.recordLogs();
        uint256 id = _open(nvda, 10_000 * USDC);
        _setPrice(nvda, 111 * USD);
        _exit(id);
        _submit(_reduceIntent(id, 10_000));

        assertEq(usdc.balanceOf(address(vault)), DEPOSITED);
        assertEq(vault.totalAssets(), DEPOSITED);
        assertEq(nvda.balanceOf(address(vault)), 0);
        assertEq(vault.tokenLedger(address(nvda)), 0);
        assertEq(positions.totalTokenLedger(address(nvda)), 0);
        assertEq(usdc.balanceOf(keeper), 0);
    }

    function test_BooksLikeARealOne() public {
        vm.expectEmit(address(positions));
        emit IPositionManager.PositionSimulated(1, agentId);
        uint256 id = _open(nvda, 10_000 * USDC);
        IPositionManager.Position memory position = positions.getPosition(id);
        assertEq(positions.capitalModeOf(id), SIMULATED);
        assertEq(position.usdcCostBasis, 10_000 * USDC);
        assertEq(allocations.allocationUsed(agentId), 10_000 * USDC);
        assertEq(router.dailyTurnoverUsdc(agentId, _today()), 10_000 * USDC);
        assertEq(positions.agentTokenBalance(agentId, address(nvda)), 0);

        _setPrice(nvda, 120 * USD);
        _submit(_reduceIntent(id, 10_000));
        int256 pnl = positions.realizedPnlUsdc(id);
        assertGt(pnl, 1_900 * int256(USDC));
        assertEq(router.lifetimeRealizedPnlUsdc(agentId), pnl);
        assertEq(allocations.allocationUsed(agentId), 0);
    }

    function test_ABuyIsRefusedWhileTradingIsPaused() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        _pauseTrading(true);
        bytes memory refusal = abi.encodeWithSelector(IMandateVault.TradingPaused.selector);
        _refuse(_openIntent(tsla, 10_000 * USDC), refusal);
        _refuse(_addIntent(id, 1_000 * USDC), refusal);
    }

    function test_ASaleIsRefusedWhileTradingIsPaused() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        skip(1);
        _pauseTrading(true);
        _refuse(_reduceIntent(id, 5_000), abi.encodeWithSelector(IMandateVault.TradingPaused.selector));
        _setPrice(nvda, 90 * USD);
        vm.expectRevert(IMandateVault.TradingPaused.selector);
        router.executeExit(id);
    }

    /// @dev The same trade of both agents: what the pool gives, fee and price impact included.
    function test_FillsAsThePoolWouldFillARealOne() public {
        market.moveTo(address(nvda), NVDA_PRICE * 10_010 / 10_000);
        uint256 snapshot = vm.snapshotState();
        uint256 paper = positions.getPosition(_open(nvda, 10_000 * USDC)).tokenAmount;
        vm.revertToState(snapshot);
        agentId = realAgent;
        uint256 real = positions.getPosition(_open(nvda, 10_000 * USDC)).tokenAmount;
        assertEq(paper, real);
    }

    function test_FillsAtTheOraclesPriceWhereThePoolIsBetter() public {
        market.moveTo(address(nvda), NVDA_PRICE * 9_900 / 10_000);
        uint256 id = _open(nvda, 10_000 * USDC);
        assertEq(positions.getPosition(id).tokenAmount, 100e18);
        skip(1);
        market.moveTo(address(nvda), NVDA_PRICE * 10_200 / 10_000);
        _submit(_reduceIntent(id, 10_000));
        assertEq(positions.realizedPnlUsdc(id), 0);
    }

    function test_HoldsTheSignedMinimumAndThePositionsSlippage() public {
        ITradeRouter.PositionIntent memory intent = _openIntent(nvda, 10_000 * USDC);
        intent.minTokenOut = 100e18;
        vm.expectPartialRevert(ITradeRouter.SlippageExceeded.selector);
        this.submit(intent);
        uint256 id = _open(nvda, 10_000 * USDC);
        skip(1);
        market.moveTo(address(nvda), NVDA_PRICE * 98 / 100);
        vm.expectPartialRevert(ITradeRouter.SlippageExceeded.selector);
        this.reduce(id);
    }

    function test_HoldsTheSameLimits() public {
        _refuse(
            _openIntent(nvda, MAX_TRADE + 1),
            abi.encodeWithSelector(ITradeRouter.ExceedsMaxTradeSize.selector, MAX_TRADE + 1, MAX_TRADE)
        );
        _open(nvda, 20_000 * USDC);
        _open(tsla, 20_000 * USDC);
        _refuse(
            _addIntent(1, 10_000 * USDC + 1),
            abi.encodeWithSelector(ITradeRouter.ExceedsAllocationCap.selector, agentId, CAP + 1, CAP)
        );
    }

    function test_NeedsNoIdleUsdcButAVaultOfTheSize() public {
        vm.prank(address(router));
        vault.pullAssetsForTrade(address(1), DEPOSITED);
        vm.mockCall(address(vault), abi.encodeWithSignature("totalAssets()"), abi.encode(DEPOSITED));
        _open(nvda, 10_000 * USDC);
        agentId = realAgent;
        _refuse(
            _openIntent(nvda, 10_000 * USDC),
            abi.encodeWithSelector(ITradeRouter.InsufficientIdleAssets.selector, 0, 10_000 * USDC)
        );
    }

    function test_AnExitFillsPartlyOnPaperToo() public {
        uint256 id = _open(nvda, 20_000 * USDC);
        uint256 held = positions.getPosition(id).tokenAmount;
        _setPrice(nvda, 91 * USD);
        market.drain(address(nvda));
        market.addLiquidity(address(nvda), 91 * USD, 200_000 * USDC);
        _exit(id);
        uint256 left = positions.dueExitOf(id).tokensLeft;
        assertGt(left, 0);
        assertLt(left, held);
        assertEq(usdc.balanceOf(address(vault)), DEPOSITED);
    }

    function test_AnExitOnPaperBringsNoMoreThanTheOraclesPrice() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        uint256 held = positions.getPosition(id).tokenAmount;
        _setPrice(nvda, 91 * USD);
        market.moveTo(address(nvda), 95 * USD);
        assertEq(_exit(id), held * 91 * USD / 1e20);
    }

    function test_TheOperatorClosesOnPaper() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        skip(5 minutes);
        _setStatus(IAgentRegistry.AgentStatus.Failed);
        vm.prank(operator);
        router.forceClose(id);
        assertEq(positions.getPosition(id).tokenAmount, 0);
        assertEq(usdc.balanceOf(address(vault)), DEPOSITED);
    }

    function submit(ITradeRouter.PositionIntent memory intent) external {
        _submit(intent);
    }

    function reduce(uint256 id) external {
        _submit(_reduceIntent(id, 10_000));
    }
}
