// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {Test} from "forge-std/Test.sol";
import {VaultTrackRegistry} from "../../src/VaultTrackRegistry.sol";
import {IVaultTrackRegistry} from "../../src/interfaces/IVaultTrackRegistry.sol";

contract VaultTrackRegistryTest is Test {
    uint256 private constant MAX_TURNOVER = 1_000_000;
    uint256 private constant MAX_TAKE_PROFIT = 10_000_000;

    VaultTrackRegistry private registry;
    address private vault = makeAddr("vault");
    address private stranger = makeAddr("stranger");

    function setUp() public {
        registry = new VaultTrackRegistry(address(this));
        registry.registerVault(vault);
        registry.setTrackType(_trackType(1, true));
    }

    /// @dev External, since with linked tests an expected revert of `new` itself would end the test.
    function deploy(address admin) external returns (VaultTrackRegistry) {
        return new VaultTrackRegistry(admin);
    }

    function test_RegistersVaultsInOrder() public {
        address second = makeAddr("second vault");
        assertFalse(registry.isRegisteredVault(second));
        vm.expectEmit(address(registry));
        emit IVaultTrackRegistry.VaultRegistered(second);
        registry.registerVault(second);

        assertTrue(registry.isRegisteredVault(second));
        assertEq(registry.vaultCount(), 2);
        assertEq(registry.vaultAt(0), vault);
        assertEq(registry.vaultAt(1), second);
        vm.expectRevert(abi.encodeWithSelector(IVaultTrackRegistry.IndexOutOfBounds.selector, 2, 2));
        registry.vaultAt(2);
    }

    function test_RefusesAVaultTwiceTheZeroAddressAndTooMany() public {
        vm.expectRevert(abi.encodeWithSelector(IVaultTrackRegistry.VaultAlreadyRegistered.selector, vault));
        registry.registerVault(vault);
        vm.expectRevert(IVaultTrackRegistry.ZeroAddress.selector);
        registry.registerVault(address(0));
        vm.expectRevert(IVaultTrackRegistry.ZeroAddress.selector);
        this.deploy(address(0));

        for (uint160 i = 1; i < 256; ++i) {
            registry.registerVault(address(i));
        }
        vm.expectRevert(abi.encodeWithSelector(IVaultTrackRegistry.TooManyVaults.selector, 256));
        registry.registerVault(stranger);
    }

    function test_OnlyTheAdminConfigures() public {
        bytes memory refusal =
            abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, stranger, bytes32(0));
        vm.startPrank(stranger);
        vm.expectRevert(refusal);
        registry.registerVault(stranger);
        vm.expectRevert(refusal);
        registry.setTrackType(_trackType(2, true));
        vm.expectRevert(refusal);
        registry.setVaultTrackConfig(vault, 1, _config());
    }

    function test_SetsAndReplacesATrackType() public {
        IVaultTrackRegistry.TrackType memory track = IVaultTrackRegistry.TrackType(255, "PRIME", 1, true);
        vm.expectEmit(address(registry));
        emit IVaultTrackRegistry.TrackTypeUpdated(255, "PRIME", 1, true);
        registry.setTrackType(track);
        assertEq(abi.encode(registry.getTrackType(255)), abi.encode(track));

        track.capitalMode = 0;
        track.active = false;
        registry.setTrackType(track);
        assertEq(abi.encode(registry.getTrackType(255)), abi.encode(track));
    }

    function test_RefusesATrackThatIsNone() public {
        vm.expectRevert(abi.encodeWithSelector(IVaultTrackRegistry.TrackTypeNotFound.selector, 9));
        registry.getTrackType(9);
        vm.expectRevert(abi.encodeWithSelector(IVaultTrackRegistry.InvalidTrackId.selector, 256));
        registry.setTrackType(_trackType(256, true));
        IVaultTrackRegistry.TrackType memory track = _trackType(2, true);
        track.capitalMode = 2;
        vm.expectRevert(abi.encodeWithSelector(IVaultTrackRegistry.InvalidCapitalMode.selector, 2));
        registry.setTrackType(track);
    }

    function testFuzz_AnswersAConfigurationExactlyAsSet(IVaultTrackRegistry.VaultTrackConfig memory config) public {
        _bound(config);
        vm.expectEmit(address(registry));
        emit IVaultTrackRegistry.VaultTrackConfigUpdated(vault, 1, config);
        registry.setVaultTrackConfig(vault, 1, config);

        assertEq(abi.encode(registry.getVaultTrackConfig(vault, 1)), abi.encode(config));
        assertEq(registry.isVaultTrackActive(vault, 1), config.active);
        IVaultTrackRegistry.TradePolicy memory policy = registry.tradePolicyOf(vault, 1);
        assertEq(policy.maxTradeSizeBps, config.maxTradeSizeBps);
        assertEq(policy.maxDailyTurnoverBps, config.maxDailyTurnoverBps);
        assertEq(policy.maxDailyLossBps, config.maxDailyLossBps);
        assertEq(policy.maxStopLossBps, config.maxStopLossBps);
        assertEq(policy.minTakeProfitBps, config.minTakeProfitBps);
        assertEq(policy.maxTakeProfitBps, config.maxTakeProfitBps);
        assertEq(policy.requireStopLoss, config.requireStopLoss);
        assertEq(policy.requireTakeProfit, config.requireTakeProfit);
        assertEq(policy.active, config.active);
    }

    function testFuzz_ASecondConfigurationLeavesNothingOfTheFirst(
        IVaultTrackRegistry.VaultTrackConfig memory first,
        IVaultTrackRegistry.VaultTrackConfig memory second
    ) public {
        _bound(first);
        _bound(second);
        registry.setVaultTrackConfig(vault, 1, first);
        registry.setVaultTrackConfig(vault, 1, second);
        assertEq(abi.encode(registry.getVaultTrackConfig(vault, 1)), abi.encode(second));
    }

    function test_RefusesAConfigurationForAnUnknownVaultOrTrack() public {
        vm.expectRevert(abi.encodeWithSelector(IVaultTrackRegistry.VaultNotRegistered.selector, stranger));
        registry.setVaultTrackConfig(stranger, 1, _config());
        vm.expectRevert(abi.encodeWithSelector(IVaultTrackRegistry.TrackTypeNotFound.selector, 2));
        registry.setVaultTrackConfig(vault, 2, _config());
    }

    function test_RefusesAConfigurationThatNamesAnotherVaultOrTrack() public {
        IVaultTrackRegistry.VaultTrackConfig memory config = _config();
        config.vault = stranger;
        vm.expectRevert(abi.encodeWithSelector(IVaultTrackRegistry.ConfigMismatch.selector, stranger, 1));
        registry.setVaultTrackConfig(vault, 1, config);
        config = _config();
        config.trackId = 2;
        vm.expectRevert(abi.encodeWithSelector(IVaultTrackRegistry.ConfigMismatch.selector, vault, 2));
        registry.setVaultTrackConfig(vault, 1, config);
    }

    function test_TakesEachValueUpToItsMaximumAndNotBeyond() public {
        IVaultTrackRegistry.VaultTrackConfig memory config = _config();
        config.maxAllocation = type(uint64).max;
        config.initialAllocation = type(uint64).max;
        config.maxDrawdownBps = 10_000;
        config.maxTradeSizeBps = 10_000;
        config.maxDailyTurnoverBps = MAX_TURNOVER;
        config.maxDailyLossBps = 10_000;
        config.evaluationPeriod = type(uint64).max;
        config.minTrades = type(uint128).max;
        config.promotionScore = type(uint128).max;
        config.maxStopLossBps = 10_000;
        config.minTakeProfitBps = MAX_TAKE_PROFIT;
        config.maxTakeProfitBps = MAX_TAKE_PROFIT;
        registry.setVaultTrackConfig(vault, 1, config);
        assertEq(abi.encode(registry.getVaultTrackConfig(vault, 1)), abi.encode(config));

        // The static head of the ABI encoding: word i is field i.
        uint8[10] memory fields = [3, 4, 5, 6, 7, 8, 9, 10, 12, 14];
        for (uint256 i = 0; i < fields.length; ++i) {
            bytes memory encoded = abi.encode(config);
            uint256 field = fields[i];
            uint256 max;
            assembly ("memory-safe") {
                let word := add(add(encoded, 0x20), mul(field, 0x20))
                max := mload(word)
                mstore(word, add(max, 1))
            }
            _expectOutOfRange(field, max + 1, max);
            registry.setVaultTrackConfig(vault, 1, abi.decode(encoded, (IVaultTrackRegistry.VaultTrackConfig)));
        }
    }

    function test_TheInitialAllocationIsWithinTheLargest() public {
        IVaultTrackRegistry.VaultTrackConfig memory config = _config();
        config.initialAllocation = config.maxAllocation;
        registry.setVaultTrackConfig(vault, 1, config);
        config.initialAllocation = config.maxAllocation + 1;
        _expectOutOfRange(2, config.initialAllocation, config.maxAllocation);
        registry.setVaultTrackConfig(vault, 1, config);
    }

    function test_ATradeSizeOfZeroIsRefused() public {
        IVaultTrackRegistry.VaultTrackConfig memory config = _config();
        config.maxTradeSizeBps = 0;
        _expectOutOfRange(5, 0, 10_000);
        registry.setVaultTrackConfig(vault, 1, config);
        config.maxTradeSizeBps = 1;
        registry.setVaultTrackConfig(vault, 1, config);
    }

    function test_TheTakeProfitBoundsAreInOrderAndZeroIsNone() public {
        IVaultTrackRegistry.VaultTrackConfig memory config = _config();
        config.minTakeProfitBps = 500;
        config.maxTakeProfitBps = 499;
        _expectOutOfRange(13, 500, 499);
        registry.setVaultTrackConfig(vault, 1, config);
        config.maxTakeProfitBps = 500;
        registry.setVaultTrackConfig(vault, 1, config);
        config.maxTakeProfitBps = 0;
        registry.setVaultTrackConfig(vault, 1, config);
        config.minTakeProfitBps = MAX_TAKE_PROFIT + 1;
        _expectOutOfRange(13, MAX_TAKE_PROFIT + 1, MAX_TAKE_PROFIT);
        registry.setVaultTrackConfig(vault, 1, config);
    }

    function test_ATrackTypeThatIsSwitchedOffStopsItsTracksInEveryVault() public {
        address second = makeAddr("second vault");
        registry.registerVault(second);
        IVaultTrackRegistry.VaultTrackConfig memory config = _config();
        registry.setVaultTrackConfig(vault, 1, config);
        config.vault = second;
        config.active = false;
        registry.setVaultTrackConfig(second, 1, config);

        registry.setTrackType(_trackType(1, false));
        assertFalse(registry.isVaultTrackActive(vault, 1));
        assertFalse(registry.tradePolicyOf(vault, 1).active);
        assertTrue(registry.getVaultTrackConfig(vault, 1).active, "the configuration itself stays as set");

        registry.setTrackType(_trackType(1, true));
        assertTrue(registry.isVaultTrackActive(vault, 1));
        assertTrue(registry.tradePolicyOf(vault, 1).active);
        assertFalse(registry.isVaultTrackActive(second, 1), "an inactive configuration stays inactive");
    }

    function test_AConfigurationOfAnInactiveTrackIsInactive() public {
        registry.setTrackType(_trackType(2, false));
        IVaultTrackRegistry.VaultTrackConfig memory config = _config();
        config.trackId = 2;
        registry.setVaultTrackConfig(vault, 2, config);
        assertFalse(registry.isVaultTrackActive(vault, 2));
        assertFalse(registry.tradePolicyOf(vault, 2).active);
    }

    function test_TheCapitalModeIsThatOfTheTrack() public {
        registry.setVaultTrackConfig(vault, 1, _config());
        assertEq(registry.capitalModeOf(vault, 1), uint8(IVaultTrackRegistry.CapitalMode.Simulated));
        IVaultTrackRegistry.TrackType memory track = _trackType(1, true);
        track.capitalMode = uint8(IVaultTrackRegistry.CapitalMode.Real);
        registry.setTrackType(track);
        assertEq(registry.capitalModeOf(vault, 1), uint8(IVaultTrackRegistry.CapitalMode.Real));
    }

    function test_AVaultMayRunATrackOnOtherCapital() public {
        uint8 real = uint8(IVaultTrackRegistry.CapitalMode.Real);
        vm.expectRevert(abi.encodeWithSelector(IVaultTrackRegistry.VaultTrackNotConfigured.selector, vault, 1));
        registry.setVaultTrackCapitalMode(vault, 1, real);
        registry.setVaultTrackConfig(vault, 1, _config());
        vm.expectRevert(abi.encodeWithSelector(IVaultTrackRegistry.InvalidCapitalMode.selector, 2));
        registry.setVaultTrackCapitalMode(vault, 1, 2);

        vm.expectEmit(address(registry));
        emit IVaultTrackRegistry.VaultTrackCapitalModeUpdated(vault, 1, real);
        registry.setVaultTrackCapitalMode(vault, 1, real);
        assertEq(registry.capitalModeOf(vault, 1), real);
        registry.setVaultTrackConfig(vault, 1, _config());
        assertEq(registry.capitalModeOf(vault, 1), real, "a new configuration leaves the mode alone");
        registry.setVaultTrackCapitalMode(vault, 1, 0);
        assertEq(registry.capitalModeOf(vault, 1), 0);

        vm.prank(stranger);
        vm.expectRevert(
            abi.encodeWithSelector(IAccessControl.AccessControlUnauthorizedAccount.selector, stranger, bytes32(0))
        );
        registry.setVaultTrackCapitalMode(vault, 1, real);
    }

    function test_WhatIsNotConfiguredIsInactiveAndHasNoConfiguration() public {
        bytes memory refusal = abi.encodeWithSelector(IVaultTrackRegistry.VaultTrackNotConfigured.selector, vault, 1);
        assertFalse(registry.isVaultTrackActive(vault, 1));
        assertFalse(registry.tradePolicyOf(vault, 1).active);
        vm.expectRevert(refusal);
        registry.getVaultTrackConfig(vault, 1);
        vm.expectRevert(refusal);
        registry.capitalModeOf(vault, 1);
    }

    function test_ThePolicyIsOneSlot() public {
        registry.setVaultTrackConfig(vault, 1, _config());
        vm.record();
        registry.tradePolicyOf(vault, 1);
        (bytes32[] memory reads,) = vm.accesses(address(registry));
        for (uint256 i = 1; i < reads.length; ++i) {
            assertEq(reads[i], reads[0]);
        }
    }

    function _expectOutOfRange(uint256 field, uint256 value, uint256 max) private {
        vm.expectRevert(abi.encodeWithSelector(IVaultTrackRegistry.ConfigValueOutOfRange.selector, field, value, max));
    }

    function _bound(IVaultTrackRegistry.VaultTrackConfig memory config) private view {
        config.vault = vault;
        config.trackId = 1;
        config.maxAllocation = bound(config.maxAllocation, 0, type(uint64).max);
        config.initialAllocation = bound(config.initialAllocation, 0, config.maxAllocation);
        config.maxDrawdownBps = bound(config.maxDrawdownBps, 0, 10_000);
        config.maxTradeSizeBps = bound(config.maxTradeSizeBps, 1, 10_000);
        config.maxDailyTurnoverBps = bound(config.maxDailyTurnoverBps, 0, MAX_TURNOVER);
        config.maxDailyLossBps = bound(config.maxDailyLossBps, 0, 10_000);
        config.evaluationPeriod = bound(config.evaluationPeriod, 0, type(uint64).max);
        config.minTrades = bound(config.minTrades, 0, type(uint128).max);
        config.promotionScore = bound(config.promotionScore, 0, type(uint128).max);
        config.maxStopLossBps = bound(config.maxStopLossBps, 0, 10_000);
        config.maxTakeProfitBps = bound(config.maxTakeProfitBps, 0, MAX_TAKE_PROFIT);
        config.minTakeProfitBps =
            bound(config.minTakeProfitBps, 0, config.maxTakeProfitBps == 0 ? MAX_TAKE_PROFIT : config.maxTakeProfitBps);
    }

    function _trackType(uint256 trackId, bool active) private pure returns (IVaultTrackRegistry.TrackType memory) {
        return IVaultTrackRegistry.TrackType({trackId: trackId, name: "FUNDED", capitalMode: 0, active: active});
    }

    function _config() private view returns (IVaultTrackRegistry.VaultTrackConfig memory) {
        return IVaultTrackRegistry.VaultTrackConfig({
            vault: vault,
            trackId: 1,
            initialAllocation: 10_000e6,
            maxAllocation: 50_000e6,
            maxDrawdownBps: 2000,
            maxTradeSizeBps: 1000,
            maxDailyTurnoverBps: 5000,
            maxDailyLossBps: 500,
            evaluationPeriod: 30 days,
            minTrades: 20,
            promotionScore: 70,
            active: true,
            maxStopLossBps: 3000,
            minTakeProfitBps: 100,
            maxTakeProfitBps: 20_000,
            requireStopLoss: true,
            requireTakeProfit: false
        });
    }
}
