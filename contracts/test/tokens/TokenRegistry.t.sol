// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {Test} from "forge-std/Test.sol";
import {PriceOracle} from "../../src/PriceOracle.sol";
import {TokenRegistry} from "../../src/TokenRegistry.sol";
import {ScaledStockToken} from "../../src/embedded/ScaledStockToken.sol";
import {StockIssuer} from "../../src/embedded/StockIssuer.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";
import {ITokenRegistry} from "../../src/interfaces/ITokenRegistry.sol";
import {RebasingToken} from "../doubles/RebasingToken.sol";
import {WrappedRebasingToken} from "../doubles/WrappedRebasingToken.sol";

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

    function test_ATokenThatConvertsToNothingIsNotDescribedAsAWrapper() public {
        address token = _token(18);
        registry.registerToken(token);
        ITokenRegistry.TokenDescription memory description;
        description.kind = ITokenRegistry.TokenKind.Wrapper;
        vm.expectRevert(
            abi.encodeWithSelector(ITokenRegistry.InvalidTokenKind.selector, token, ITokenRegistry.TokenKind.Wrapper)
        );
        registry.describeToken(token, description);
        assertTrue(registry.descriptionOf(token).kind == ITokenRegistry.TokenKind.Plain);
    }

    function test_TheMultiplierOfATokenIsItsOwnWordAndWhenItChanges() public {
        StockIssuer issuer = new StockIssuer(address(new ScaledStockToken()), address(this));
        ScaledStockToken token = ScaledStockToken(issuer.deploy("NVIDIA", "NVDA"));
        _assertMultiplier(address(token), 1e18, 0);
        token.updateMultiplier(4e18, block.timestamp + 600);
        _assertMultiplier(address(token), 1e18, block.timestamp + 600);
        skip(600);
        _assertMultiplier(address(token), 4e18, block.timestamp);
        _assertMultiplier(_token(6), 0, 0);
    }

    function test_AWrapperStandsForWhatItConvertsToTimesTheMultiplierOfItsAsset() public {
        RebasingToken rebasing = new RebasingToken("Rebasing", "RBS");
        address wrapper = _wrapperOf(address(rebasing));
        _assertMultiplier(wrapper, 1e18, 0);
        rebasing.rebase(4e18);
        (uint256 multiplier,) = registry.multiplierOf(wrapper);
        assertApproxEqAbs(multiplier, 4e18, 1);

        StockIssuer issuer = new StockIssuer(address(new ScaledStockToken()), address(this));
        ScaledStockToken scaled = ScaledStockToken(issuer.deploy("NVIDIA", "NVDA"));
        wrapper = _wrapperOf(address(scaled));
        scaled.updateMultiplier(2e18);
        _assertMultiplier(wrapper, 2e18, block.timestamp);
    }

    function test_ATokenThatAnswersBadlyHasNoMultiplierAndNothingReverts() public {
        address token = _token(18);
        address wrapper = _wrapperOf(token);
        bytes[5] memory codes = [
            bytes(hex"fe"), // takes all gas
            hex"5f5ffd", // reverts
            hex"620fffff5ff3", // returns a megabyte of zeros
            hex"601f5ff3", // returns 31 bytes
            hex"00" // returns nothing
        ];
        for (uint256 i; i < codes.length; ++i) {
            vm.etch(token, codes[i]);
            _assertMultiplier(token, 0, 0);
            vm.etch(wrapper, codes[i]);
            uint256 gas = gasleft();
            registry.multiplierOf(wrapper);
            assertLt(gas - gasleft(), 400_000, "bounded");
        }
        vm.etch(token, hex"5f195f5260205ff3"); // 2^256 - 1 for everything
        vm.etch(wrapper, hex"5f195f5260205ff3");
        _assertMultiplier(token, type(uint256).max, type(uint256).max);
        (uint256 multiplier,) = registry.multiplierOf(wrapper);
        assertEq(multiplier, 0);
    }

    function _assertMultiplier(address token, uint256 multiplier, uint256 effectiveAt) private view {
        (uint256 found, uint256 at) = registry.multiplierOf(token);
        assertEq(found, multiplier);
        assertEq(at, effectiveAt);
    }

    /// @dev Holds some of the asset, so that its rate follows the asset's balance.
    function _wrapperOf(address asset) private returns (address wrapper) {
        wrapper = address(new WrappedRebasingToken(RebasingToken(asset)));
        deal(asset, address(this), 8e18);
        IERC20(asset).approve(wrapper, 8e18);
        WrappedRebasingToken(wrapper).deposit(8e18, address(this));
        registry.registerToken(wrapper);
        ITokenRegistry.TokenDescription memory description;
        description.kind = ITokenRegistry.TokenKind.Wrapper;
        registry.describeToken(wrapper, description);
    }

    function _token(uint8 decimals) private returns (address) {
        return address(new StockToken("NVIDIA", "NVDA", decimals, address(this)));
    }
}
