// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IServiceReader} from "../../src/interfaces/IServiceReader.sol";
import {IAllocationManager} from "../../src/interfaces/IAllocationManager.sol";
import {PriceMath} from "../../src/libraries/PriceMath.sol";
import {ReaderTest} from "./ReaderTest.sol";

contract EquityTest is ReaderTest {
    function test_AnEquityIsThatOfTheLens() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        _submit(_reduceIntent(id, 2_500));
        IServiceReader.Equity memory equity = _riskEquity();
        _equityIsThatOfTheLens(equity);
        assertEq(equity.unrealized, lens.positionUnrealizedPnlUsdc(id));
    }

    function test_WhatADeploymentDoesNotHaveIsNotKnown() public {
        delete contracts;
        (, IServiceReader.Equity[] memory found,) = _equities();
        assertFalse(found[0].isKnown);
        reader.vaultFigures(contracts, address(vault), new uint256[](1));
    }

    function test_AnEquityWithoutAFreshPriceHasTheLastOne() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        int256 fresh = lens.positionUnrealizedPnlUsdc(id);
        skip(2 hours);
        vm.expectRevert();
        lens.currentEquityUsdc(agentId);
        IServiceReader.Equity memory equity = _riskEquity();
        assertEq(equity.staleTokens.length, 1);
        assertEq(equity.staleTokens[0], address(nvda));
        assertEq(equity.unrealized, fresh);
        assertEq(int256(equity.current), int256(equity.cap) + fresh);
        assertEq(equity.drawdownBps, (equity.peak - equity.current) * 10_000 / equity.peak);
    }

    function test_AnEquityWithoutAFreshPriceCountsTheTracksResultsOnly() public {
        _open(nvda, 10_000 * USDC);
        IAllocationManager.TrackRecord memory record = allocations.trackRecordOf(agentId);
        record.realizedPnl = -7 * int256(USDC);
        vm.mockCall(address(allocations), abi.encodeCall(allocations.trackRecordOf, (agentId)), abi.encode(record));
        skip(2 hours);
        IServiceReader.Equity memory equity = _riskEquity();
        assertEq(int256(equity.current), int256(equity.cap) - 7 * int256(USDC) + equity.unrealized);
    }

    function test_EquitiesAreThoseOfTheRiskFigures() public {
        _open(nvda, 10_000 * USDC);
        (, IServiceReader.Equity[] memory found, IServiceReader.Worth[] memory worths) = _equities();
        assertEq(found.length, 2);
        assertEq(abi.encode(found[0]), abi.encode(_riskEquity()));
        assertEq(found[1].current, 0);
        assertTrue(worths[0].isKnown);
        assertEq(worths[0].totalAssets, vault.totalAssets());
        assertEq(worths[0].idleAssets, vault.idleAssets());
        assertEq(worths[0].totalShares, vault.totalSupply());
        assertEq(worths[0].sharePrice, vault.convertToAssets(10 ** vault.decimals()));
        assertFalse(worths[1].isKnown);
    }

    function test_EquitiesEndBeforeTheGas() public {
        _open(nvda, 10_000 * USDC);
        uint256[] memory ids = new uint256[](500);
        for (uint256 i; i < ids.length; ++i) {
            ids[i] = agentId;
        }
        (, IServiceReader.Equity[] memory found,) = reader.equities{gas: 15_000_000}(contracts, ids, new address[](0));
        assertGt(found.length, 10);
        assertLt(found.length, ids.length);
        assertTrue(found[found.length - 1].isKnown);
    }

    function test_HoldingsAndIdleAssetsAreAllThatAVaultHas() public {
        _open(nvda, 10_000 * USDC);
        uint256[] memory ids = new uint256[](2);
        (ids[0], ids[1]) = (agentId, NOBODY);
        (, IServiceReader.VaultFigures memory figures) = reader.vaultFigures(contracts, address(vault), ids);
        assertEq(figures.used, allocations.allocationUsed(agentId));
        assertEq(figures.counted, 2);
        _same(figures.maxPriceAge, address(vault), abi.encodeCall(vault.maxPriceAge, ()));
        _same(
            figures.totalAgentCaps, address(allocations), abi.encodeCall(allocations.totalAgentCaps, (address(vault)))
        );
        IServiceReader.Holding[] memory holdings = figures.holdings;
        assertEq(holdings.length, 2);
        assertEq(holdings[0].token, address(nvda));
        assertEq(holdings[0].amount, vault.tokenLedger(address(nvda)));
        assertEq(holdings[1].amount, 0);
        _same(holdings[0].round, address(oracle), abi.encodeCall(oracle.latestRoundData, (address(nvda))));
        (, int256 price,,,) = oracle.latestRoundData(address(nvda));
        uint256 value = PriceMath.usdcValue(holdings[0].amount, uint256(price), tokens.tokenDecimals(address(nvda)));
        assertEq(figures.worth.idleAssets + value, figures.worth.totalAssets);

        vm.mockCallRevert(address(vault), abi.encodeCall(vault.tokenLedger, (address(nvda))), "");
        deal(address(nvda), address(vault), 7);
        (, figures) = reader.vaultFigures(contracts, address(vault), ids);
        assertEq(figures.holdings[0].amount, nvda.balanceOf(address(vault)));
    }

    function _equities()
        private
        returns (
            IServiceReader.Block memory at,
            IServiceReader.Equity[] memory found,
            IServiceReader.Worth[] memory worths
        )
    {
        uint256[] memory ids = new uint256[](2);
        (ids[0], ids[1]) = (agentId, NOBODY);
        address[] memory vaults = new address[](2);
        (vaults[0], vaults[1]) = (address(vault), address(nvda));
        return reader.equities(contracts, ids, vaults);
    }

    function _equityIsThatOfTheLens(IServiceReader.Equity memory equity) private view {
        assertTrue(equity.isKnown);
        assertEq(equity.cap, allocations.allocationCap(agentId));
        assertEq(equity.used, allocations.allocationUsed(agentId));
        assertEq(equity.realized, router.lifetimeRealizedPnlUsdc(agentId));
        assertEq(equity.peak, lens.peakEquityUsdc(agentId));
        assertEq(equity.current, lens.currentEquityUsdc(agentId));
        assertEq(equity.drawdownBps, lens.currentDrawdownBps(agentId));
        assertEq(equity.openCount, positions.getOpenPositionIds(agentId).length);
        assertEq(equity.staleTokens.length, 0);
    }

    function _riskEquity() private returns (IServiceReader.Equity memory) {
        (, IServiceReader.Risk memory risk) = reader.riskFigures(contracts, agentId);
        return risk.equity;
    }
}
