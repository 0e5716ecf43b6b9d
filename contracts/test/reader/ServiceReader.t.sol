// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC5267} from "@openzeppelin/contracts/interfaces/IERC5267.sol";
import {IAllocationManager} from "../../src/interfaces/IAllocationManager.sol";
import {IPromotionCriteria} from "../../src/interfaces/IPromotionCriteria.sol";
import {IOwnerControls} from "../../src/interfaces/IOwnerControls.sol";
import {IServiceReader} from "../../src/interfaces/IServiceReader.sol";
import {IUniswapV3QuoterV2} from "../../src/interfaces/IUniswapV3QuoterV2.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";
import {ReaderTest} from "./ReaderTest.sol";

contract ServiceReaderTest is ReaderTest {
    address private constant ARB_SYS = address(0x64);

    function test_TermsAreTheDirectReads() public {
        _open(nvda, 10_000 * USDC);
        _submit(_reduceIntent(1, 2_500));
        IServiceReader.Terms memory terms = _terms(_buying(address(tsla), 0));

        _same(terms.agent.record, address(agents), abi.encodeCall(agents.getAgent, (agentId)));
        _same(terms.agent.isOwnerCurrent, address(agents), abi.encodeCall(agents.isERC8004OwnerCurrent, (agentId)));
        _same(terms.nonce, address(router), abi.encodeCall(router.nonces, (agentId)));
        _same(terms.domain, address(router), abi.encodeCall(IERC5267.eip712Domain, ()));
        _same(terms.registryPaused, address(agents), abi.encodeCall(agents.paused, ()));
        _same(terms.allocation, address(allocations), abi.encodeCall(allocations.getAllocation, (agentId)));
        _same(terms.trackConfig, address(tracks), abi.encodeCall(tracks.getVaultTrackConfig, (address(vault), 0)));
        _same(terms.trackActive, address(tracks), abi.encodeCall(tracks.isVaultTrackActive, (address(vault), 0)));
        _same(terms.vault.tradingPaused, address(vault), abi.encodeCall(vault.tradingPaused, ()));
        _same(terms.vault.totalAssets, address(vault), abi.encodeCall(vault.totalAssets, ()));
        _same(terms.vault.idleAssets, address(vault), abi.encodeCall(vault.idleAssets, ()));
        _same(terms.vault.asset, address(vault), abi.encodeCall(vault.asset, ()));
        _same(terms.vault.maxPriceAge, address(vault), abi.encodeCall(vault.maxPriceAge, ()));
        assertEq(terms.vault.allowedTokens.length, 2);
        assertEq(terms.vault.allowedTokens[0], address(nvda));
        assertEq(terms.vault.allowedTokens[1], address(tsla));
        assertEq(terms.day, _today());
        _same(terms.dailyTurnover, address(router), abi.encodeCall(router.dailyTurnoverUsdc, (agentId, _today())));
        _same(terms.dailyRealizedPnl, address(router), abi.encodeCall(router.dailyRealizedPnlUsdc, (agentId, _today())));
        assertFalse(terms.position.record.success);
        _same(terms.token.isAllowed, address(vault), abi.encodeCall(vault.isAllowedToken, (address(tsla))));
        _same(terms.token.round, address(oracle), abi.encodeCall(oracle.latestRoundData, (address(tsla))));
        _same(terms.token.maxAge, address(oracle), abi.encodeCall(oracle.maxAgeOf, (address(tsla))));
        _same(
            terms.token.openPositionId,
            address(positions),
            abi.encodeCall(positions.openPositionId, (agentId, address(tsla)))
        );
        _same(terms.token.decimals, address(tokens), abi.encodeCall(tokens.tokenDecimals, (address(tsla))));
        _same(terms.capitalMode, address(allocations), abi.encodeCall(allocations.capitalModeOf, (agentId)));
        _same(terms.effectiveCap, address(allocations), abi.encodeCall(allocations.effectiveCapUsdc, (agentId)));
        _same(terms.policy, address(tradePolicy), abi.encodeCall(tradePolicy.limitsOf, (address(vault), 0)));
        _same(terms.orderDomain, address(orderBook), abi.encodeCall(IERC5267.eip712Domain, ()));
        _same(terms.openOrderCount, address(orderBook), abi.encodeCall(orderBook.openOrderCount, (agentId)));
        _same(terms.maxOpenOrders, address(orderBook), abi.encodeCall(orderBook.MAX_OPEN_ORDERS, ()));
        assertFalse(terms.orderState.success);
    }

    function test_AnOrderIsReadWithTheTerms() public {
        IServiceReader.Subject memory subject;
        (subject.agentId, subject.orderId) = (agentId, keccak256("order"));
        bytes memory call = abi.encodeCall(orderBook.orderStateOf, (agentId, subject.orderId));
        _same(_terms(subject).orderState, address(orderBook), call);

        vm.mockCallRevert(address(agents), abi.encodeWithSelector(agents.orderBook.selector), "");
        IServiceReader.Terms memory terms = _terms(subject);
        assertFalse(terms.orderDomain.success);
        assertFalse(terms.orderState.success);
    }

    /// @dev A deployment with protocol.md's functions only: every other one reverts without data.
    function test_ADeploymentWithoutTheExtensionIsRead() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        vm.mockCallRevert(address(allocations), abi.encodeWithSelector(allocations.capitalModeOf.selector), "");
        vm.mockCallRevert(address(positions), abi.encodeWithSelector(positions.capitalModeOf.selector), "");
        vm.mockCallRevert(address(lens), abi.encodeWithSelector(lens.exitStateOf.selector), "");
        vm.mockCallRevert(address(allocations), abi.encodeWithSelector(allocations.effectiveCapUsdc.selector), "");
        vm.mockCallRevert(address(allocations), abi.encodeWithSelector(allocations.trackRecordOf.selector), "");
        vm.mockCallRevert(address(router), abi.encodeWithSelector(router.tradePolicy.selector), "");
        vm.mockCallRevert(address(agents), abi.encodeWithSelector(agents.promotionCriteria.selector), "");

        IServiceReader.Terms memory terms = _terms(_buying(address(tsla), USDC));
        assertTrue(terms.allocation.success);
        assertFalse(terms.capitalMode.success);
        assertFalse(terms.effectiveCap.success);
        assertFalse(terms.policy.success);
        assertEq(terms.fills[1].amountIn, CAP - 10_000 * USDC);

        IServiceReader.Risk memory risk = _risk();
        assertTrue(risk.tradeCount.success);
        assertFalse(risk.capitalMode.success);
        assertFalse(risk.trackRecord.success);
        assertFalse(risk.policy.success);
        assertFalse(risk.promotion.success);

        (,,, IServiceReader.PositionAnswers[] memory open) = reader.openPositions(contracts, agentId);
        _same(open[0].record, address(positions), abi.encodeCall(positions.getPosition, (id)));
        assertTrue(open[0].unrealizedPnl.success);
        assertFalse(open[0].capitalMode.success);
        assertFalse(open[0].exitState.success);
    }

    function test_ABuyIsQuotedAtWhatItGives() public {
        uint256 amount = 1_234 * USDC;
        IServiceReader.Terms memory terms = _terms(_buying(address(nvda), amount));
        assertTrue(terms.quoted);
        assertEq(terms.fills[0].amountIn, amount);
        assertEq(terms.fills[1].amountIn, CAP);
        assertEq(terms.fills[16].amountIn, CAP / 16);
        assertEq(terms.fills[17].amountIn, CAP / 32);
        assertGt(terms.fills[terms.fills.length - 1].amountIn, USDC);
        for (uint256 i; i < terms.fills.length; ++i) {
            assertEq(terms.fills[i].amountOut, _quote(address(usdc), address(nvda), terms.fills[i].amountIn));
        }

        uint256 id = _open(nvda, amount);
        assertEq(positions.getPosition(id).tokenAmount, terms.fills[0].amountOut);
    }

    function test_ASaleIsQuotedAtWhatItGives() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        IServiceReader.Subject memory subject;
        (subject.agentId, subject.positionId, subject.exitBps) = (agentId, id, 2_500);
        IServiceReader.Terms memory terms = _terms(subject);

        _samePosition(terms.position, id);
        assertEq(terms.fills.length, 0);
        assertEq(terms.sale.amountIn, positions.getPosition(id).tokenAmount / 4);
        assertEq(_submit(_reduceIntent(id, 2_500)), terms.sale.amountOut);
    }

    function test_AQuoteIsThatOfThePoolThatTrades() public {
        uint256 amount = 10_000 * USDC;
        uint256 inFirst = _terms(_buying(address(nvda), amount)).fills[0].amountOut;
        market.setFee(address(nvda), 3_000);
        market.createPool(address(nvda), NVDA_PRICE * 99 / 100, POOL_DEPTH);
        vm.prank(admin);
        adapter.setOtherPools(address(nvda), [uint24(3_000), 0, 0]);
        IServiceReader.Terms memory terms = _terms(_buying(address(nvda), amount));
        assertGt(terms.fills[0].amountOut, inFirst);
        uint256 id = _open(nvda, amount);
        assertEq(positions.getPosition(id).tokenAmount, terms.fills[0].amountOut);

        market.setFee(address(nvda), 500);
        IServiceReader.Subject memory subject;
        (subject.agentId, subject.positionId, subject.exitBps) = (agentId, id, 5_000);
        uint256 quoted = _terms(subject).sale.amountOut;
        assertEq(_submit(_reduceIntent(id, 5_000)), quoted);
    }

    function test_AnAmountThatNoPoolFillsHasNoFill() public {
        market.drain(address(nvda));
        (, IServiceReader.Terms memory terms) =
            reader.intentTerms{gas: 50_000_000}(contracts, _buying(address(nvda), USDC));
        assertTrue(terms.quoted);
        assertTrue(terms.token.decimals.success);
        for (uint256 i; i < terms.fills.length; ++i) {
            assertEq(terms.fills[i].amountOut, 0);
        }
    }

    function test_WhatADeploymentDoesNotHaveIsAbsent() public {
        (contracts.quoter, contracts.swapAdapter) = (address(0), address(0));
        vm.mockCallRevert(address(oracle), abi.encodeWithSelector(oracle.maxAgeOf.selector), "");
        IServiceReader.Terms memory terms = _terms(_buying(address(nvda), USDC));
        assertFalse(terms.quoted);
        assertEq(terms.fills.length, 0);
        assertFalse(terms.token.maxAge.success);
        assertTrue(terms.token.round.success);

        delete contracts;
        assertFalse(_terms(_buying(address(nvda), USDC)).agent.record.success);
        reader.closedPositions(contracts, agentId, 10);
        reader.openPositions(contracts, agentId);
        reader.riskFigures(contracts, agentId);
        reader.agentByERC8004(contracts, 0);
        reader.linkTerms(contracts, agentId);
    }

    function test_AnAgentThatIsNoneIsAbsent() public {
        IServiceReader.Subject memory subject = _buying(address(nvda), USDC);
        subject.agentId = NOBODY;
        assertFalse(_terms(subject).agent.record.success);
        (, IServiceReader.Risk memory risk) = reader.riskFigures(contracts, NOBODY);
        assertFalse(risk.agent.record.success);
        (, uint256 id,) = reader.agentByERC8004(contracts, NOBODY);
        assertEq(id, 0);
    }

    function testFuzz_AnyAllocationIsRead(uint256 cap, uint256 used, uint256 amount) public {
        IAllocationManager.Allocation memory allocation = allocations.getAllocation(agentId);
        (allocation.cap, allocation.used) = (cap, used);
        vm.mockCall(address(allocations), abi.encodeCall(allocations.getAllocation, (agentId)), abi.encode(allocation));
        vm.mockCall(
            contracts.quoter,
            abi.encodeWithSelector(IUniswapV3QuoterV2.quoteExactInputSingle.selector),
            abi.encode(amount, 1 << 96, 0, 0)
        );
        IServiceReader.Terms memory terms = _terms(_buying(address(nvda), amount));
        assertEq(terms.fills[0].amountIn, amount);
        assertEq(terms.fills[0].amountOut, amount);
    }

    function testFuzz_AMalformedListIsRead(bytes calldata answer) public {
        vm.mockCall(address(positions), abi.encodeWithSelector(positions.getOpenPositionIds.selector), answer);
        reader.openPositions(contracts, agentId);
    }

    function test_TheMultiplierIsTheRegistrysWordOrElseTheTokens() public {
        _open(nvda, 10_000 * USDC);
        bytes memory call = abi.encodeCall(tokens.multiplierOf, (address(nvda)));
        vm.mockCall(address(tokens), call, abi.encode(4e18, 7));
        vm.mockCall(address(nvda), abi.encodeWithSignature("uiMultiplier()"), abi.encode(3e18));
        _assertMultiplier(abi.encode(4e18, 7));
        vm.mockCallRevert(address(tokens), call, "");
        _assertMultiplier(abi.encode(3e18));
        // A token that takes all gas is left out, and the rest is read.
        vm.clearMockedCalls();
        vm.mockCallRevert(address(tokens), call, "");
        vm.etch(address(nvda), hex"fe");
        assertFalse(_terms(_buying(address(nvda), 0)).token.multiplier.success);
        (, IServiceReader.VaultFigures memory figures) =
            reader.vaultFigures(contracts, address(vault), new uint256[](0));
        assertTrue(figures.worth.isKnown);
        assertFalse(figures.holdings[0].multiplier.success);
    }

    function _assertMultiplier(bytes memory expected) private {
        (,,, IServiceReader.PositionAnswers[] memory open) = reader.openPositions(contracts, agentId);
        assertEq(open[0].multiplier.data, expected);
        assertEq(_terms(_buying(address(nvda), 0)).token.multiplier.data, expected);
        (, IServiceReader.VaultFigures memory figures) =
            reader.vaultFigures(contracts, address(vault), new uint256[](0));
        assertEq(figures.holdings[0].token, address(nvda));
        assertEq(figures.holdings[0].multiplier.data, expected);
    }

    function test_OpenPositionsAreTheDirectReads() public {
        uint256 first = _open(nvda, 10_000 * USDC);
        uint256 second = _open(tsla, 5_000 * USDC);
        (, IServiceReader.AgentAnswers memory agent,, IServiceReader.PositionAnswers[] memory open) =
            reader.openPositions(contracts, agentId);
        _same(agent.record, address(agents), abi.encodeCall(agents.getAgent, (agentId)));
        assertEq(open.length, 2);
        _samePosition(open[0], first);
        _samePosition(open[1], second);
    }

    function test_ClosedPositionsAreTheAgentsNewestFirst() public {
        uint256 first = _closed();
        uint256 second = _closed();
        _open(tsla, 5_000 * USDC);
        uint256 other = _register(vm.addr(signerKey));
        assertEq(_closedPositions(other, 10).length, 0);

        IServiceReader.PositionAnswers[] memory closed = _closedPositions(agentId, 10);
        assertEq(closed.length, 2);
        _same(closed[0].record, address(positions), abi.encodeCall(positions.getPosition, (second)));
        _same(closed[0].exitRules, address(positions), abi.encodeCall(positions.getExitRules, (second)));
        _same(closed[1].record, address(positions), abi.encodeCall(positions.getPosition, (first)));
        assertFalse(closed[0].unrealizedPnl.success);
        assertEq(_closedPositions(agentId, 1).length, 1);
    }

    function test_ClosedPositionsAreSoughtAmongTheNewest500() public {
        _closed();
        _countPositions(500);
        assertEq(_closedPositions(agentId, 10).length, 1);
        _countPositions(501);
        assertEq(_closedPositions(agentId, 10).length, 0);
    }

    function test_RiskFiguresAreTheDirectReads() public {
        _open(nvda, 10_000 * USDC);
        _closed(tsla);
        IServiceReader.Risk memory risk = _risk();
        _same(risk.allocation, address(allocations), abi.encodeCall(allocations.getAllocation, (agentId)));
        _same(risk.trackConfig, address(tracks), abi.encodeCall(tracks.getVaultTrackConfig, (address(vault), 0)));
        assertEq(risk.day, _today());
        _same(risk.dailyRealizedPnl, address(router), abi.encodeCall(router.dailyRealizedPnlUsdc, (agentId, _today())));
        _same(risk.tradeCount, address(lens), abi.encodeCall(lens.tradeCount, (agentId)));
        _same(risk.positionsOpened, address(lens), abi.encodeCall(lens.positionsOpened, (agentId)));
        _same(risk.positionsClosed, address(lens), abi.encodeCall(lens.positionsClosed, (agentId)));
        _same(risk.capitalMode, address(allocations), abi.encodeCall(allocations.capitalModeOf, (agentId)));
        _same(risk.effectiveCap, address(allocations), abi.encodeCall(allocations.effectiveCapUsdc, (agentId)));
        _same(risk.trackRecord, address(allocations), abi.encodeCall(allocations.trackRecordOf, (agentId)));
        _same(risk.policy, address(tradePolicy), abi.encodeCall(tradePolicy.limitsOf, (address(vault), 0)));
        _same(risk.promotion, agents.promotionCriteria(), abi.encodeCall(IPromotionCriteria.criteriaOf, (agentId)));
    }

    function test_LinkTermsAreTheDirectReads() public {
        (
            ,
            IServiceReader.AgentAnswers memory agent,
            IServiceReader.Answer memory domain,
            IServiceReader.Answer memory nonce,
            IServiceReader.Answer memory identities
        ) = reader.linkTerms(contracts, agentId);
        _same(agent.record, address(agents), abi.encodeCall(agents.getAgent, (agentId)));
        _same(domain, address(agents), abi.encodeCall(IERC5267.eip712Domain, ()));
        _same(nonce, address(agents), abi.encodeCall(agents.nonces, (owner)));
        _same(identities, address(agents), abi.encodeCall(agents.erc8004IdentityRegistry, ()));
    }

    function test_OwnerTermsAreTheDirectReads() public {
        _open(nvda, 1_000 * USDC);
        vm.startPrank(owner);
        controls.offerOwnership(agentId, makeAddr("new owner"), 0, block.timestamp, "");
        IOwnerControls.Mandate memory mandate;
        mandate.allowedTokens = new address[](1);
        mandate.allowedTokens[0] = address(nvda);
        controls.setMandate(agentId, mandate, 1, block.timestamp, "");
        vm.stopPrank();

        (, IServiceReader.OwnerTerms memory terms) = reader.ownerTerms(contracts, agentId);
        assertEq(terms.ownerControls, address(controls));
        _same(terms.agent.record, address(agents), abi.encodeCall(agents.getAgent, (agentId)));
        _same(terms.domain, address(controls), abi.encodeCall(IERC5267.eip712Domain, ()));
        _same(terms.ownerNonce, address(controls), abi.encodeCall(controls.nonces, (owner)));
        _same(terms.mandate, address(controls), abi.encodeCall(controls.mandateOf, (agentId)));
        _same(terms.pendingOwner, address(controls), abi.encodeCall(controls.pendingOwnerOf, (agentId)));
        assertEq(abi.decode(terms.pendingOwner.data, (address)), makeAddr("new owner"));
        _same(terms.pendingOwnerNonce, address(controls), abi.encodeCall(controls.nonces, (makeAddr("new owner"))));
        _same(terms.intentNonce, address(router), abi.encodeCall(router.nonces, (agentId)));
        _same(terms.openPositionIds, address(positions), abi.encodeCall(positions.getOpenPositionIds, (agentId)));
        assertEq(terms.vaultTokens.length, 2);
        assertTrue(abi.decode(terms.allowed[0].data, (bool)));
        assertFalse(abi.decode(terms.allowed[1].data, (bool)));

        IServiceReader.Terms memory buy = _terms(_buying(address(tsla), 0));
        _same(buy.mandate, address(controls), abi.encodeCall(controls.mandateOf, (agentId)));
        _same(buy.isTokenAllowed, address(controls), abi.encodeCall(controls.isTokenAllowed, (agentId, address(tsla))));
    }

    /// @dev An older deployment of ours, and one with the protocol's functions alone.
    function test_ADeploymentWithoutOwnerControlsIsRead() public {
        vm.mockCall(address(agents), abi.encodeCall(agents.ownerControls, ()), abi.encode(address(0)));
        (, IServiceReader.OwnerTerms memory terms) = reader.ownerTerms(contracts, agentId);
        assertEq(terms.ownerControls, address(0));
        assertFalse(terms.mandate.success);
        _same(terms.intentNonce, address(router), abi.encodeCall(router.nonces, (agentId)));
        vm.mockCallRevert(address(agents), abi.encodeCall(agents.ownerControls, ()), "");
        (, terms) = reader.ownerTerms(contracts, agentId);
        assertEq(terms.ownerControls, address(0));
        IServiceReader.Terms memory buy = _terms(_buying(address(tsla), 0));
        assertFalse(buy.mandate.success || buy.isTokenAllowed.success);
        assertTrue(buy.nonce.success);
    }

    function test_TheAgentOfAnIdentityIsRead() public {
        vm.mockCall(address(agents), abi.encodeCall(agents.agentIdByERC8004, (7)), abi.encode(agentId));
        (, uint256 id, IServiceReader.AgentAnswers memory agent) = reader.agentByERC8004(contracts, 7);
        assertEq(id, agentId);
        _same(agent.record, address(agents), abi.encodeCall(agents.getAgent, (agentId)));
    }

    function test_TheBlockIsTheChainsOwn() public {
        (IServiceReader.Block memory at,) = reader.riskFigures(contracts, agentId);
        assertEq(at.number, block.number);
        assertEq(at.timestamp, block.timestamp);
        assertEq(at.chainId, block.chainid);

        vm.mockCall(ARB_SYS, abi.encodeWithSignature("arbBlockNumber()"), abi.encode(123_456_789));
        (at,) = reader.riskFigures(contracts, agentId);
        assertEq(at.number, 123_456_789);
    }

    function _terms(IServiceReader.Subject memory subject) private returns (IServiceReader.Terms memory terms) {
        (, terms) = reader.intentTerms(contracts, subject);
    }

    function _risk() private returns (IServiceReader.Risk memory risk) {
        (, risk) = reader.riskFigures(contracts, agentId);
    }

    function _closedPositions(uint256 agent, uint256 limit)
        private
        returns (IServiceReader.PositionAnswers[] memory closed)
    {
        (,,, closed) = reader.closedPositions(contracts, agent, limit);
    }

    function _buying(address token, uint256 usdcAmount) private view returns (IServiceReader.Subject memory subject) {
        (subject.agentId, subject.token, subject.usdcAmount) = (agentId, token, usdcAmount);
    }

    function _closed() private returns (uint256) {
        return _closed(nvda);
    }

    function _closed(StockToken token) private returns (uint256 id) {
        id = _open(token, 1_000 * USDC);
        _submit(_reduceIntent(id, 10_000));
    }

    function _countPositions(uint256 count) private {
        vm.mockCall(address(positions), abi.encodeCall(positions.positionCount, ()), abi.encode(count));
    }

    function _quote(address tokenIn, address tokenOut, uint256 amountIn) private returns (uint256 amountOut) {
        (amountOut,,,) = IUniswapV3QuoterV2(contracts.quoter)
            .quoteExactInputSingle(
                IUniswapV3QuoterV2.QuoteExactInputSingleParams(tokenIn, tokenOut, amountIn, market.FEE(), 0)
            );
    }

    function _samePosition(IServiceReader.PositionAnswers memory answers, uint256 id) private view {
        _same(answers.record, address(positions), abi.encodeCall(positions.getPosition, (id)));
        _same(answers.exitRules, address(positions), abi.encodeCall(positions.getExitRules, (id)));
        _same(answers.unrealizedPnl, address(lens), abi.encodeCall(lens.positionUnrealizedPnlUsdc, (id)));
        _same(answers.capitalMode, address(positions), abi.encodeCall(positions.capitalModeOf, (id)));
        _same(answers.exitState, address(lens), abi.encodeCall(lens.exitStateOf, (id)));
    }
}
