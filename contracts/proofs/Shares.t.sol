// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Test} from "forge-std/Test.sol";
import {MandateVault} from "../src/MandateVault.sol";
import {PriceOracle} from "../src/PriceOracle.sol";
import {TokenRegistry} from "../src/TokenRegistry.sol";
import {UsdcToken} from "../src/embedded/UsdcToken.sol";

/// @notice The vault itself, for every amount below 2^40 base units of USDC and every number of locked shares. The proof is the
/// vault's router and its own allocation manager, so it locks and burns as the ledger does.
contract ShareProofs is Test {
    UsdcToken private usdc;
    MandateVault private vault;
    address private constant HOLDER = address(0x1001);
    uint256 private constant FIRST = 1_000_000e6;

    function allocationManager() external view returns (address) {
        return address(this);
    }

    function tradeInProgress() external pure returns (bool) {
        return false;
    }

    function setUp() public {
        usdc = new UsdcToken(address(this), "USD Coin", "USDC", "2");
        usdc.grantRole(usdc.MINTER_ROLE(), address(this));
        TokenRegistry tokens = new TokenRegistry(address(this), address(new PriceOracle(address(this))));
        vault = new MandateVault(address(this), address(usdc), "Vault", "V", "vault", address(tokens));
        vault.setTradeRouter(address(this));
        vault.setFees(10, 10, address(0));
        usdc.mint(address(this), FIRST);
        usdc.approve(address(vault), type(uint256).max);
        vault.deposit(FIRST, HOLDER);
    }

    function check_LockedSharesNeitherMoveNorRedeem(uint96 locked, uint96 moved) public {
        uint256 balance = vault.balanceOf(HOLDER);
        vm.assume(locked <= balance && moved <= balance && moved > balance - locked);
        vault.lockFirstLoss(HOLDER, locked);
        vm.prank(HOLDER);
        (bool success,) = address(vault).call(abi.encodeCall(vault.transfer, (address(this), moved)));
        assert(!success);
    }

    function check_ALockNeverExceedsTheBalance(uint96 first, uint96 second) public {
        (bool one,) = address(vault).call(abi.encodeCall(vault.lockFirstLoss, (HOLDER, first)));
        (bool both,) = address(vault).call(abi.encodeCall(vault.lockFirstLoss, (HOLDER, second)));
        uint256 sum = (one ? first : 0) + (both ? uint256(second) : 0);
        assert(vault.firstLossShares(HOLDER) == sum);
        assert(sum <= vault.balanceOf(HOLDER));
    }

    function check_ABurnTakesLockedSharesAndNoOthers(uint96 locked, uint96 burned) public {
        uint256 balance = vault.balanceOf(HOLDER);
        vm.assume(locked <= balance);
        vault.lockFirstLoss(HOLDER, locked);
        (bool success,) = address(vault).call(abi.encodeCall(vault.burnFirstLoss, (HOLDER, burned)));
        assert(success == (burned <= locked));
        if (!success) return;
        assert(vault.balanceOf(HOLDER) == balance - burned && vault.firstLossShares(HOLDER) == locked - burned);
        assert(vault.totalSupply() == balance - burned);
    }
}
