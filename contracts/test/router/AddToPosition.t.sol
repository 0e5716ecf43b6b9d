// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IAllocationManager} from "../../src/interfaces/IAllocationManager.sol";
import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {IPriceOracle} from "../../src/interfaces/IPriceOracle.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";
import {ProtocolTest} from "./ProtocolTest.sol";

contract AddToPositionTest is ProtocolTest {
    uint256 private id;

    function setUp() public override {
        super.setUp();
        id = _open(nvda, 10_000 * USDC);
    }

    function test_AveragesTheEntryPriceByCost() public {
        IPositionManager.Position memory before = positions.getPosition(id);
        _setPrice(nvda, 105 * USD);

        vm.expectEmit(true, true, false, false, address(positions));
        emit IPositionManager.PositionIncreased(id, agentId, 0, 0, 0);
        vm.expectEmit(true, true, false, false, address(router));
        emit ITradeRouter.PositionIncreasedFromIntent(id, agentId, 0, 0);
        uint256 added = _submit(_addIntent(id, 5_000 * USDC));

        IPositionManager.Position memory position = positions.getPosition(id);
        assertEq(position.tokenAmount, before.tokenAmount + added);
        assertEq(position.usdcCostBasis, 15_000 * USDC);
        assertEq(position.entryPriceUsdc, 15_000 * USDC * 1e18 / position.tokenAmount);
        assertGt(position.entryPriceUsdc, before.entryPriceUsdc);
        assertEq(position.openedAt, before.openedAt);
        assertEq(nvda.balanceOf(address(vault)), position.tokenAmount);
    }

    function test_BooksLikeAnOpen() public {
        _submit(_addIntent(id, 5_000 * USDC));
        assertEq(router.nonces(agentId), 2);
        assertEq(allocations.tradeCount(agentId), 2);
        assertEq(router.dailyTurnoverUsdc(agentId, _today()), 15_000 * USDC);
        assertEq(allocations.allocationUsed(agentId), 15_000 * USDC);
        assertEq(positions.openPositionCountByAgent(agentId), 1);
    }

    function test_KeepsThePositionsOwnSlippage() public {
        ITradeRouter.AddToPositionIntent memory intent = _addIntent(id, 1_000 * USDC);
        intent.maxSlippageBps = 50;
        _submit(intent);
        assertEq(positions.getPosition(id).maxSlippageBps, 100);

        intent = _addIntent(id, 1_000 * USDC);
        intent.maxSlippageBps = 250;
        _submit(intent);
        assertEq(positions.getPosition(id).maxSlippageBps, 100);
    }

    function test_RefusesWhileAPendingRuleIsMet() public {
        _setPrice(nvda, 111 * USD);
        bytes memory refusal = abi.encodeWithSelector(ITradeRouter.PendingRuleAlreadyTriggered.selector, id);
        _refuse(_addIntent(id, 1_000 * USDC), refusal);
        _setPrice(nvda, 91 * USD);
        _refuse(_addIntent(id, 1_000 * USDC), refusal);
        _exit(id);
        assertEq(positions.getPosition(id).tokenAmount, 0);
    }

    function test_RefusesAPositionOfOtherCapital() public {
        vm.mockCall(address(allocations), abi.encodeWithSelector(allocations.bookBuy.selector), abi.encode(0));
        _refuse(_addIntent(id, 1_000 * USDC), abi.encodeWithSelector(ITradeRouter.CapitalModeMismatch.selector, id, 1));
    }

    function test_KeepsTheLadderAndWhatHasFired() public {
        _setPrice(nvda, 111 * USD);
        _exit(id);
        bytes memory rules = abi.encode(positions.getExitRules(id));
        _submit(_addIntent(id, 1_000 * USDC));
        assertEq(abi.encode(positions.getExitRules(id)), rules);
        assertEq(positions.getPosition(id).nextRuleIndex, 1);
    }

    function test_OnlyTheExecutorSubmits() public {
        ITradeRouter.AddToPositionIntent memory intent = _addIntent(id, 1_000 * USDC);
        bytes memory signature = _sign(signerKey, digests.hashAddToPosition(intent));
        bytes memory refusal = abi.encodeWithSelector(
            IAccessControl.AccessControlUnauthorizedAccount.selector, address(this), router.EXECUTOR_ROLE()
        );
        vm.expectRevert(refusal);
        router.addToPosition(intent, signature);
    }

    function test_RefusesAnExpiredDeadlineAndAWrongNonce() public {
        ITradeRouter.AddToPositionIntent memory intent = _addIntent(id, 1_000 * USDC);
        intent.deadline = block.timestamp - 1;
        _refuse(intent, abi.encodeWithSelector(ITradeRouter.ExpiredDeadline.selector));

        intent = _addIntent(id, 1_000 * USDC);
        intent.nonce = 2;
        _refuse(intent, abi.encodeWithSelector(ITradeRouter.InvalidNonce.selector, 1, 2));
    }

    function test_RefusesWhileTheRegistryIsPaused() public {
        _pauseRegistry();
        _refuse(_addIntent(id, 1_000 * USDC), abi.encodeWithSelector(ITradeRouter.RegistryPaused.selector));
    }

    function test_RefusesAnAgentThatIsNotActive() public {
        _setStatus(IAgentRegistry.AgentStatus.Suspended);
        _refuse(_addIntent(id, 1_000 * USDC), abi.encodeWithSelector(ITradeRouter.AgentNotTradable.selector, agentId));
    }

    function test_RefusesAnUnknownAClosedAndAnotherAgentsPosition() public {
        _refuse(_addIntent(99, 1_000 * USDC), abi.encodeWithSelector(IPositionManager.PositionNotFound.selector, 99));

        uint256 other = _register(vm.addr(signerKey));
        ITradeRouter.AddToPositionIntent memory intent = _addIntent(id, 1_000 * USDC);
        (intent.agentId, intent.nonce) = (other, 0);
        _refuse(intent, abi.encodeWithSelector(ITradeRouter.PositionAgentMismatch.selector, id, other));

        _submit(_reduceIntent(id, 10_000));
        _refuse(_addIntent(id, 1_000 * USDC), abi.encodeWithSelector(ITradeRouter.PositionNotOpen.selector, id));
    }

    function test_RefusesWhileTradingIsPaused() public {
        _pauseTrading(true);
        _refuse(_addIntent(id, 1_000 * USDC), abi.encodeWithSelector(IMandateVault.TradingPaused.selector));
    }

    function test_RefusesAnInactiveTrack() public {
        IVaultTrackRegistry.VaultTrackConfig memory policy = _policy();
        policy.active = false;
        _setPolicy(policy);
        _refuse(
            _addIntent(id, 1_000 * USDC),
            abi.encodeWithSelector(ITradeRouter.VaultTrackNotActive.selector, address(vault), 0)
        );
    }

    function test_RefusesATokenNoLongerAllowed() public {
        vm.prank(admin);
        vault.setTokenEnabled(address(nvda), false);
        _refuse(
            _addIntent(id, 1_000 * USDC), abi.encodeWithSelector(ITradeRouter.TokenNotAllowed.selector, address(nvda))
        );
    }

    function test_RefusesTooMuchSlippageAndNoAmount() public {
        ITradeRouter.AddToPositionIntent memory intent = _addIntent(id, 1_000 * USDC);
        intent.maxSlippageBps = 10_001;
        _refuse(intent, abi.encodeWithSelector(ITradeRouter.BpsOutOfRange.selector, 10_001));
        _refuse(_addIntent(id, 0), abi.encodeWithSelector(ITradeRouter.InvalidTradeAmount.selector, 0));
    }

    function test_HoldsTheAllocation() public {
        vm.prank(operator);
        allocations.setAllocationStatus(agentId, uint8(IAllocationManager.AllocationStatus.Paused));
        _refuse(
            _addIntent(id, 1_000 * USDC), abi.encodeWithSelector(ITradeRouter.AllocationNotActive.selector, agentId)
        );
        vm.prank(operator);
        allocations.setAllocationStatus(agentId, uint8(IAllocationManager.AllocationStatus.Active));

        _submit(_addIntent(id, 15_000 * USDC));
        _submit(_addIntent(id, 15_000 * USDC));
        _refuse(
            _addIntent(id, 10_000 * USDC + 1),
            abi.encodeWithSelector(ITradeRouter.ExceedsAllocationCap.selector, agentId, CAP + 1, CAP)
        );
        _submit(_addIntent(id, 10_000 * USDC));
        assertEq(allocations.allocationUsed(agentId), CAP);
    }

    function test_HoldsTheTradeSize() public {
        uint256 max = vault.totalAssets() * 200 / 10_000;
        _refuse(
            _addIntent(id, max + 1), abi.encodeWithSelector(ITradeRouter.ExceedsMaxTradeSize.selector, max + 1, max)
        );
        _submit(_addIntent(id, max));
    }

    function test_HoldsTheDailyTurnover() public {
        IVaultTrackRegistry.VaultTrackConfig memory policy = _policy();
        policy.maxDailyTurnoverBps = 200;
        _setPolicy(policy);
        uint256 max = vault.totalAssets() * 200 / 10_000;
        uint256 left = max - 10_000 * USDC;
        _refuse(
            _addIntent(id, left + 1),
            abi.encodeWithSelector(ITradeRouter.ExceedsDailyTurnover.selector, agentId, max + 1, max)
        );
        _submit(_addIntent(id, left));
    }

    function test_HoldsTheDailyLoss() public {
        _setPrice(nvda, 30 * USD);
        _submit(_reduceIntent(id, 9_000));
        uint256 loss = uint256(-router.dailyRealizedPnlUsdc(agentId, _today()));
        _refuse(
            _addIntent(id, 1_000 * USDC),
            abi.encodeWithSelector(ITradeRouter.ExceedsDailyLoss.selector, agentId, loss, MAX_LOSS)
        );
    }

    function test_RefusesAStalePrice() public {
        (, uint64 observedAt,) = oracle.peekPrice(address(nvda));
        vm.warp(observedAt + 1 hours + 1);
        _refuse(
            _addIntent(id, 1_000 * USDC),
            abi.encodeWithSelector(IPriceOracle.StalePrice.selector, address(nvda), observedAt, 1 hours)
        );
    }

    function test_HoldsTheSignedMinimumToTheUnit() public {
        ITradeRouter.AddToPositionIntent memory intent = _addIntent(id, 1_000 * USDC);
        uint256 snapshot = vm.snapshotState();
        uint256 fill = _submit(intent);
        vm.revertToState(snapshot);

        intent.minTokenOut = fill + 1;
        _refuse(intent, abi.encodeWithSelector(ITradeRouter.SlippageExceeded.selector, fill + 1, fill));
        intent.minTokenOut = fill;
        _submit(intent);
    }

    function testFuzz_TheEntryPriceStaysBetweenTheFills(uint256 amount, uint256 price) public {
        amount = bound(amount, 10 * USDC, 19_000 * USDC);
        // Between the stop and the first take: an add is refused while a rule is met.
        price = bound(price, 93 * USD, 109 * USD);
        uint256 first = positions.getPosition(id).entryPriceUsdc;
        _setPrice(nvda, price);
        ITradeRouter.AddToPositionIntent memory intent = _addIntent(id, amount);
        uint256 added = _submit(intent);
        uint256 second = amount * 1e18 / added;

        uint256 entry = positions.getPosition(id).entryPriceUsdc;
        assertGe(entry + 1, first < second ? first : second);
        assertLe(entry, (first > second ? first : second) + 1);
        assertEq(allocations.allocationUsed(agentId), 10_000 * USDC + amount);
    }
}
