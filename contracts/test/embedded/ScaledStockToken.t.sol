// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {Test, Vm} from "forge-std/Test.sol";
import {ScaledStockToken} from "../../src/embedded/ScaledStockToken.sol";
import {StockIssuer} from "../../src/embedded/StockIssuer.sol";
import {RebasingToken} from "../doubles/RebasingToken.sol";
import {WrappedRebasingToken} from "../doubles/WrappedRebasingToken.sol";

contract ScaledStockTokenTest is Test {
    /// @dev The slot where ERC-1967 keeps a proxy's beacon.
    bytes32 private constant BEACON_SLOT = bytes32(uint256(keccak256("eip1967.proxy.beacon")) - 1);

    StockIssuer private issuer;
    ScaledStockToken private token;
    address private holder = makeAddr("holder");
    address private other = makeAddr("other");

    function setUp() public {
        vm.warp(1_790_000_000);
        issuer = new StockIssuer(address(new ScaledStockToken()), address(this));
        token = ScaledStockToken(issuer.deploy(unicode"CrowdStrike • Robinhood Token", "CRWD"));
        token.mint(holder, 10e18);
    }

    function test_EveryTokenIsABeaconProxyOfTheIssuerWithEighteenDecimals() public view {
        assertEq(address(token), vm.computeCreateAddress(address(issuer), 1));
        assertEq(address(uint160(uint256(vm.load(address(token), BEACON_SLOT)))), address(issuer));
        assertEq(token.symbol(), "CRWD");
        assertEq(token.name(), unicode"CrowdStrike • Robinhood Token");
        assertEq(token.decimals(), 18);
        assertEq(token.uiMultiplier(), 1e18);
        assertEq(token.newUIMultiplier(), 1e18);
        assertEq(token.effectiveAt(), 0);
    }

    function test_TheInterfacesAndTopicsAreTheDeployedOnes() public view {
        assertTrue(token.supportsInterface(0x01ffc9a7));
        assertTrue(token.supportsInterface(0xa60bf13d));
        assertTrue(token.supportsInterface(0x4bd27648));
        assertTrue(token.supportsInterface(0xd890fd71));
        assertFalse(token.supportsInterface(0xffffffff));
        assertEq(token.uiMultiplier.selector, bytes4(0xa60bf13d));
        assertEq(token.newUIMultiplier.selector ^ token.effectiveAt.selector, bytes4(0x4bd27648));
        assertEq(token.balanceOfUI.selector ^ token.totalSupplyUI.selector, bytes4(0xd890fd71));
        assertEq(bytes4(ScaledStockToken.UIMultiplierUpdated.selector), bytes4(0x2205df45));
        assertEq(bytes4(ScaledStockToken.TransferWithScaledUI.selector), bytes4(0x37e7f0db));
    }

    function test_AScheduledChangeTakesEffectInTheFirstBlockAtItsTimeWithoutALog() public {
        uint256 at = block.timestamp + 10 minutes;
        vm.expectEmit(address(token));
        emit ScaledStockToken.UIMultiplierUpdated(1e18, 4e18, at);
        token.updateMultiplier(4e18, at);
        // The same schedule again, as the deployed tokens allow.
        vm.expectEmit(address(token));
        emit ScaledStockToken.UIMultiplierUpdated(1e18, 4e18, at);
        token.updateMultiplier(4e18, at);

        vm.warp(at - 1);
        assertEq(token.uiMultiplier(), 1e18);
        assertEq(token.newUIMultiplier(), 4e18);
        assertEq(token.balanceOfUI(holder), 10e18);

        vm.warp(at);
        assertEq(token.uiMultiplier(), 4e18);
        assertEq(token.balanceOf(holder), 10e18);
        assertEq(token.balanceOfUI(holder), 40e18);
        assertEq(token.totalSupplyUI(), 40e18);

        // Both views keep the change that has passed.
        vm.warp(at + 365 days);
        assertEq(token.newUIMultiplier(), 4e18);
        assertEq(token.effectiveAt(), at);
    }

    function test_AnImmediateChangeIsInEffectAtOnce() public {
        vm.expectEmit(address(token));
        emit ScaledStockToken.UIMultiplierUpdated(1e18, 2e18, block.timestamp);
        token.updateMultiplier(2e18);
        assertEq(token.uiMultiplier(), 2e18);

        vm.expectRevert(ScaledStockToken.InvalidMultiplier.selector);
        token.updateMultiplier(0);
        vm.expectRevert(ScaledStockToken.InvalidMultiplier.selector);
        token.updateMultiplier(1e18, block.timestamp - 1);
    }

    function test_EveryTransferIsLoggedASecondTimeInShares() public {
        token.updateMultiplier(4e18);
        vm.expectEmit(address(token));
        emit IERC20.Transfer(holder, other, 1e18);
        vm.expectEmit(address(token));
        emit ScaledStockToken.TransferWithScaledUI(holder, other, 1e18, 4e18);
        vm.prank(holder);
        token.transfer(other, 1e18);
    }

    function test_PausesHaveEventsWithoutArgumentsAndStopTransfers() public {
        vm.recordLogs();
        token.setTokenPaused(true);
        token.setTokenPaused(false);
        token.setOraclePaused(true);
        token.setOraclePaused(false);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        string[4] memory names = ["Paused()", "Unpaused()", "OraclePaused()", "OracleUnpaused()"];
        for (uint256 i; i < names.length; ++i) {
            assertEq(logs[i].topics[0], keccak256(bytes(names[i])));
            assertEq(logs[i].data.length, 0);
        }

        token.setTokenPaused(true);
        assertTrue(token.paused());
        _expectTransferToRevert(abi.encodeWithSelector(ScaledStockToken.TokenPaused.selector));
        token.setTokenPaused(false);
        issuer.setPaused(true);
        assertTrue(token.paused());
        assertFalse(token.tokenPaused());
        _expectTransferToRevert(abi.encodeWithSelector(ScaledStockToken.TokenPaused.selector));
        issuer.setPaused(false);
        token.setOraclePaused(true);
        vm.prank(holder);
        token.transfer(other, 1);
    }

    function test_TheIssuerBlocksAndBurnsAndUpgradesWithoutATimelock() public {
        issuer.setBlocked(holder, true);
        _expectTransferToRevert(abi.encodeWithSelector(ScaledStockToken.AccountBlocked.selector, holder));
        token.adminBurn(holder, 4e18);
        assertEq(token.balanceOf(holder), 6e18);
        issuer.setBlocked(holder, false);
        issuer.setBlocked(other, true);
        _expectTransferToRevert(abi.encodeWithSelector(ScaledStockToken.AccountBlocked.selector, other));

        address next = address(new ScaledStockToken());
        issuer.upgradeTo(next);
        assertEq(issuer.implementation(), next);
        assertEq(token.balanceOf(holder), 6e18);
    }

    function test_NobodyElseHasAPower() public {
        vm.startPrank(holder);
        bytes memory refused = abi.encodeWithSelector(ScaledStockToken.NotIssuer.selector, holder);
        vm.expectRevert(refused);
        token.mint(holder, 1);
        vm.expectRevert(refused);
        token.adminBurn(other, 1);
        vm.expectRevert(refused);
        token.updateMultiplier(2e18);
        vm.expectRevert(refused);
        token.updateMultiplier(2e18, block.timestamp + 1);
        vm.expectRevert(refused);
        token.setTokenPaused(true);
        vm.expectRevert(refused);
        token.setOraclePaused(true);
        bytes memory unowned = abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, holder);
        vm.expectRevert(unowned);
        issuer.deploy("Other", "OTH");
        vm.expectRevert(unowned);
        issuer.setPaused(true);
        vm.expectRevert(unowned);
        issuer.setBlocked(other, true);
        vm.expectRevert(ScaledStockToken.AlreadyInitialized.selector);
        token.initialize("Other", "OTH");
        ScaledStockToken implementation = ScaledStockToken(issuer.implementation());
        vm.expectRevert(ScaledStockToken.AlreadyInitialized.selector);
        implementation.initialize("Other", "OTH");
    }

    function test_AWrapperKeepsItsBalancesWhileItsAssetRebases() public {
        RebasingToken asset = new RebasingToken("Rebasing", "RBS");
        WrappedRebasingToken wrapper = new WrappedRebasingToken(asset);
        deal(address(asset), holder, 8e18);
        vm.startPrank(holder);
        asset.approve(address(wrapper), 8e18);
        wrapper.deposit(8e18, holder);
        vm.stopPrank();
        uint256 shares = wrapper.balanceOf(holder);

        asset.rebase(2e18);
        assertEq(wrapper.balanceOf(holder), shares);
        assertEq(asset.sharesOf(address(wrapper)), 8e18);
        assertApproxEqAbs(wrapper.convertToAssets(shares), 16e18, 2);
    }

    function _expectTransferToRevert(bytes memory reason) private {
        vm.expectRevert(reason);
        vm.prank(holder);
        token.transfer(other, 1);
    }
}
