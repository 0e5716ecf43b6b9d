// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {PriceOracle} from "../../src/PriceOracle.sol";
import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

/// @notice How a vault moves to another price oracle
contract OracleMigrationTest is ProtocolTest {
    function test_TheAdminBringsTheVaultToTheRegistrysOracleOnceThatContinuesTheRounds() public {
        PriceOracle next = new PriceOracle(admin);
        vm.startPrank(admin);
        tokens.setPriceOracle(address(next));
        vm.expectRevert(abi.encodeWithSelector(IMandateVault.OracleRoundsBehind.selector, address(nvda), 1, 0));
        vault.syncPriceOracle();
        address[] memory assets = new address[](1);
        assets[0] = address(nvda);
        next.inheritFrom(address(oracle), assets);
        vm.expectRevert(abi.encodeWithSelector(IMandateVault.OracleRoundsBehind.selector, address(tsla), 1, 0));
        vault.syncPriceOracle();

        assets[0] = address(tsla);
        next.inheritFrom(address(oracle), assets);
        assertEq(vault.priceOracle(), address(oracle));
        vm.expectEmit(address(vault));
        emit IMandateVault.PriceOracleUpdated(address(oracle), address(next));
        vault.syncPriceOracle();
        assertEq(vault.priceOracle(), address(next));
    }

    function test_LeavesAnOracleThatDoesNotAnswer() public {
        PriceOracle next = new PriceOracle(admin);
        vm.mockCallRevert(address(oracle), abi.encodeWithSelector(oracle.peekPrice.selector), "broken");
        vm.startPrank(admin);
        tokens.setPriceOracle(address(next));
        vault.syncPriceOracle();
        assertEq(vault.priceOracle(), address(next));
    }
}
