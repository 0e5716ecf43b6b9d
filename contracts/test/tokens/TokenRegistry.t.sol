// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {Test} from "forge-std/Test.sol";
import {PriceOracle} from "../../src/PriceOracle.sol";
import {TokenRegistry} from "../../src/TokenRegistry.sol";
import {ScaledStockToken} from "../../src/embedded/ScaledStockToken.sol";
import {StockIssuer} from "../../src/embedded/StockIssuer.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";
import {ITokenRegistry} from "../../src/interfaces/ITokenRegistry.sol";

contract TokenRegistryTest is Test {
    TokenRegistry private registry;
    address private oracle;
    address private operator = makeAddr("operator");
    address private stranger = makeAddr("stranger");

    function setUp() public {
        oracle = address(new PriceOracle(address(this)));
        registry = new TokenRegistry(address(this), oracle);
        registry.grantRole(registry.OPERATOR_ROLE(), operator);
    }

    /// @dev External, since with linked tests an expected revert of `new` itself would end the test.
    function deploy(address admin, address priceOracle) external returns (TokenRegistry) {
        return new TokenRegistry(admin, priceOracle);
    }

    function testFuzz_ListsATokenWithTheDecimalsItReports(uint8 decimals) public {
        decimals = uint8(bound(decimals, 0, 18));
        address token = _token(decimals);
        assertFalse(registry.isTokenListed(token));

        vm.expectEmit(address(registry));
        emit ITokenRegistry.TokenRegistered(token, decimals);
        registry.registerToken(token);

        assertTrue(registry.isTokenListed(token));
        assertTrue(registry.isTokenActive(token));
        assertEq(registry.tokenDecimals(token), decimals);
        assertEq(registry.getTokenConfig(token).decimals, decimals);
        assertTrue(registry.getTokenConfig(token).active);
        assertEq(registry.tokenCount(), 1);
        assertEq(registry.tokenAt(0), token);
    }

    function test_RefusesMoreThanEighteenDecimals() public {
        address token = _token(19);
        vm.expectRevert(abi.encodeWithSelector(ITokenRegistry.InvalidTokenDecimals.selector, token, 19));
        registry.registerToken(token);
    }

    function test_RefusesATokenTwiceAndTheZeroAddress() public {
        address token = _token(18);
        registry.registerToken(token);
        vm.expectRevert(abi.encodeWithSelector(ITokenRegistry.TokenAlreadyListed.selector, token));
        registry.registerToken(token);
        vm.expectRevert(ITokenRegistry.ZeroAddress.selector);
        registry.registerToken(address(0));
        vm.expectRevert(ITokenRegistry.ZeroAddress.selector);
        registry.setPriceOracle(address(0));
        vm.expectRevert(ITokenRegistry.ZeroAddress.selector);
        this.deploy(address(0), oracle);
        vm.expectRevert(ITokenRegistry.ZeroAddress.selector);
        this.deploy(address(this), address(0));
    }

    function test_TheOperatorTakesATokenOutAndIn() public {
        address token = _token(18);
        registry.registerToken(token);

        vm.startPrank(operator);
        vm.expectEmit(address(registry));
        emit ITokenRegistry.TokenActiveUpdated(token, false);
        registry.setTokenActive(token, false);
        assertFalse(registry.isTokenActive(token));
        assertTrue(registry.isTokenListed(token));
        assertEq(registry.tokenDecimals(token), 18);

        registry.setTokenActive(token, true);
        assertTrue(registry.isTokenActive(token));
    }

    function test_AnUnlistedTokenIsInactiveAndHasNoDecimals() public {
        bytes memory refusal = abi.encodeWithSelector(ITokenRegistry.TokenNotListed.selector, stranger);
        assertFalse(registry.isTokenListed(stranger));
        assertFalse(registry.isTokenActive(stranger));
        vm.expectRevert(refusal);
        registry.tokenDecimals(stranger);
        vm.expectRevert(refusal);
        registry.getTokenConfig(stranger);
        vm.expectRevert(refusal);
        vm.prank(operator);
        registry.setTokenActive(stranger, true);
    }

    function test_AnIndexBeyondTheListIsRefused() public {
        registry.registerToken(_token(6));
        vm.expectRevert(abi.encodeWithSelector(ITokenRegistry.IndexOutOfBounds.selector, 1, 1));
        registry.tokenAt(1);
    }

    function test_OnlyTheAdminListsAndOnlyTheOperatorActivates() public {
        address token = _token(18);
        bytes32 operatorRole = registry.OPERATOR_ROLE();
        vm.startPrank(stranger);
        vm.expectRevert(
            abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, stranger, bytes32(0))
        );
        registry.registerToken(token);
        vm.expectRevert(
            abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, stranger, bytes32(0))
        );
        registry.setPriceOracle(stranger);
        vm.expectRevert(
            abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, stranger, operatorRole)
        );
        registry.setTokenActive(token, false);
    }

    function test_TheAdminReplacesTheOracle() public {
        address next = address(new PriceOracle(address(this)));
        assertEq(registry.priceOracle(), oracle);
        vm.expectEmit(address(registry));
        emit ITokenRegistry.PriceOracleUpdated(oracle, next);
        registry.setPriceOracle(next);
        assertEq(registry.priceOracle(), next);
    }

    function test_TheAdminDescribesAListedTokenInOneSlot() public {
        StockIssuer issuer = new StockIssuer(address(new ScaledStockToken()), address(this));
        address token = issuer.deploy("NVIDIA", "NVDA");
        ITokenRegistry.TokenDescription memory description = ITokenRegistry.TokenDescription({
            kind: ITokenRegistry.TokenKind.ScaledUI,
            session: ITokenRegistry.TokenSession.Continuous,
            powers: 15,
            issuer: address(issuer)
        });
        vm.expectRevert(abi.encodeWithSelector(ITokenRegistry.TokenNotListed.selector, token));
        registry.describeToken(token, description);

        registry.registerToken(token);
        assertEq(registry.descriptionOf(token).issuer, address(0));
        assertTrue(registry.descriptionOf(token).kind == ITokenRegistry.TokenKind.Plain);
        assertTrue(registry.descriptionOf(token).session == ITokenRegistry.TokenSession.UsEquity24x5);

        vm.record();
        vm.expectEmit(address(registry));
        emit ITokenRegistry.TokenDescribed(token, description);
        registry.describeToken(token, description);
        (, bytes32[] memory writes) = vm.accesses(address(registry));
        for (uint256 i = 1; i < writes.length; ++i) {
            assertEq(writes[i], writes[0]);
        }
        assertEq(abi.encode(registry.descriptionOf(token)), abi.encode(description));

        vm.prank(stranger);
        vm.expectRevert(
            abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, stranger, bytes32(0))
        );
        registry.describeToken(token, description);
    }

    function test_ATokenWithoutAMultiplierIsNotDescribedAsScaled() public {
        address token = _token(18);
        registry.registerToken(token);
        ITokenRegistry.TokenDescription memory description;
        registry.describeToken(token, description);
        description.kind = ITokenRegistry.TokenKind.ScaledUI;
        bytes memory refused =
            abi.encodeWithSelector(ITokenRegistry.InvalidTokenKind.selector, token, ITokenRegistry.TokenKind.ScaledUI);
        vm.expectRevert(refused);
        registry.describeToken(token, description);

        vm.mockCall(token, abi.encodeWithSignature("uiMultiplier()"), abi.encode(0));
        vm.expectRevert(refused);
        registry.describeToken(token, description);
        vm.mockCall(token, abi.encodeWithSignature("uiMultiplier()"), hex"01");
        vm.expectRevert(refused);
        registry.describeToken(token, description);
        vm.mockCallRevert(token, abi.encodeWithSignature("uiMultiplier()"), "");
        vm.expectRevert(refused);
        registry.describeToken(token, description);
    }

    function _token(uint8 decimals) private returns (address) {
        return address(new StockToken("NVIDIA", "NVDA", decimals, address(this)));
    }
}
