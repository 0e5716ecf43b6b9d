// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {StockToken} from "../../src/embedded/StockToken.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

/// @notice What a call costs its sender: whole transactions, with intrinsic gas, calldata and refunds, on cold storage.
/// The figures are kept in snapshots/RouterGas.json and explained in GAS.md.
/// forge-config: default.isolate = true
contract RouterGasTest is ProtocolTest {
    uint160 private constant LOWEST_SQRT_PRICE = 4_295_128_740;
    uint160 private constant HIGHEST_SQRT_PRICE = 1_461_446_703_485_210_103_287_273_052_203_988_822_378_723_970_341;

    /// @dev Another agent has bought and sold both tokens and still holds them, so that the vault, the books and the pools
    /// know them. The trade policy has its default limits, and the pools have a history of five minutes.
    function setUp() public override {
        super.setUp();
        (uint256 mine, uint256 key) = (agentId, signerKey);
        signerKey = 0xB0B;
        agentId = _register(vm.addr(signerKey));
        _submit(_reduceIntent(_open(nvda, 5_000 * USDC), 1_000));
        _submit(_reduceIntent(_open(tsla, 5_000 * USDC), 1_000));
        (agentId, signerKey) = (mine, key);
        _useDefaultLimits();
        _settle(nvda, NVDA_PRICE);
        _settle(tsla, TSLA_PRICE);
        skip(1);
    }

    function test_TheBareSwap() public {
        _record("bare swap, USDC for token", _bareBuy());
        _record("bare swap, token for USDC", _bareSell());
    }

    function test_TheFirstOpenOfAnAgent() public {
        uint256 used = _openGas();
        _record("openPosition, 3 rules, the agent's first trade", used, 375_589);
        assertLe(used * 10, _bareBuy() * 39);
    }

    function test_AnOpenOfAnAgentThatTradedToday() public {
        _open(tsla, 1_000 * USDC);
        skip(1);
        uint256 used = _openGas();
        _record("openPosition, 3 rules", used, 341_614);
        assertLe(used * 10, _bareBuy() * 39);
    }

    function test_AnOpenOfATokenWithTwoPools() public {
        _open(tsla, 1_000 * USDC);
        market.setFee(address(nvda), 3_000);
        market.createPool(address(nvda), NVDA_PRICE, POOL_DEPTH);
        market.setFee(address(nvda), 500);
        _setPools(500, 3_000);
        skip(1);
        uint256 snapshot = vm.snapshotState();
        _record("openPosition, 3 rules, the first of two pools", _openGas());
        vm.revertToState(snapshot);
        _setPools(3_000, 500);
        skip(1);
        _record("openPosition, 3 rules, the second of two pools", _openGas());
    }

    /// @dev A trade every few seconds: the average needs a search through the pool's observations.
    function test_AnOpenInABusyPool() public {
        _open(tsla, 1_000 * USDC);
        for (uint256 i; i < 40; ++i) {
            skip(10);
            market.moveTo(address(nvda), NVDA_PRICE + i % 2 * 1e5);
        }
        _setOraclePrice(nvda, NVDA_PRICE);
        skip(1);
        _record("openPosition, 3 rules, in a busy pool", _openGas());
    }

    function test_TheFirstOpenOfADay() public {
        _open(tsla, 1_000 * USDC);
        vm.warp((_today() + 1) * DAY + 10);
        _setOraclePrice(nvda, NVDA_PRICE);
        uint256 used = _openGas();
        _record("openPosition, 3 rules, on the agent's second day", used, 387_617);
        assertLe(used * 10, _bareBuy() * 39);

        _submit(_reduceIntent(4, 10_000));
        vm.warp((_today() + 1) * DAY + 10);
        _setOraclePrice(nvda, NVDA_PRICE);
        used = _openGas();
        _record("openPosition, 3 rules, first trade of a later day", used, 373_312);
        assertLe(used * 10, _bareBuy() * 39);
    }

    function test_AnAdd() public {
        uint256 id = _open(nvda, 5_000 * USDC);
        skip(1);
        _submit(_addIntent(id, 5_000 * USDC));
        _record("addToPosition", _lastCall(), 269_270);
    }

    function test_AReduce() public {
        uint256 id = _open(nvda, 5_000 * USDC);
        skip(1);
        _submit(_reduceIntent(id, 5_000));
        uint256 used = _lastCall();
        _record("reducePosition, half", used, 230_526);
        assertLe(used * 10, _bareSell() * 28);

        skip(1);
        _submit(_reduceIntent(id, 10_000));
        used = _lastCall();
        _record("reducePosition, all", used, 243_154);
        assertLe(used * 10, _bareSell() * 28);
    }

    function test_AnUpdate() public {
        uint256 id = _open(nvda, 5_000 * USDC);
        skip(1);
        _submit(_updateIntent(id, _threeRules()));
        _record("updateExitLadder, 3 rules", _lastCall(), 113_749);
    }

    function test_AnExit() public {
        uint256 id = _open(nvda, 5_000 * USDC);
        _payKeeperOnce();
        _settle(nvda, 111 * USD);
        skip(1);
        _exit(id);
        _record("executeExit, half", _lastCall(), 256_472);
        _settle(nvda, 122 * USD);
        skip(1);
        _exit(id);
        _record("executeExit, half again", _lastCall(), 239_086);
    }

    function test_ABatchOfExits() public {
        uint256[] memory ids = new uint256[](2);
        ids[0] = _open(nvda, 5_000 * USDC);
        ids[1] = _open(tsla, 5_000 * USDC);
        _payKeeperOnce();
        _settle(nvda, 111 * USD);
        _settle(tsla, 280 * USD);
        skip(1);
        vm.prank(keeper);
        router.executeExits(ids);
        _record("executeExits, two due", _lastCall(), 411_409);
    }

    function test_AForceClose() public {
        uint256 id = _open(nvda, 5_000 * USDC);
        vm.prank(operator);
        agents.setAgentStatus(agentId, 2);
        skip(1);
        vm.prank(operator);
        router.forceClose(id);
        _record("forceClose", _lastCall(), 235_414);
    }

    /// @dev Oracle and pool are at `price`, the pool for five minutes.
    function _settle(StockToken token, uint256 price) private {
        _setPrice(token, price);
        skip(5 minutes);
        _setOraclePrice(token, price);
    }

    /// @dev A keeper that has been paid before.
    function _payKeeperOnce() private {
        vm.prank(admin);
        usdc.mint(keeper, 1);
    }

    function _setPools(uint24 first, uint24 second) private {
        vm.startPrank(admin);
        adapter.setPool(address(nvda), first);
        adapter.setOtherPools(address(nvda), [second, 0, 0]);
        vm.stopPrank();
    }

    function _openGas() private returns (uint256) {
        ITradeRouter.PositionIntent memory intent = _openIntent(nvda, 10_000 * USDC);
        bytes memory signature = _sign(signerKey, digests.hashOpenPosition(intent));
        vm.prank(executor);
        router.openPosition(intent, signature);
        return _lastCall();
    }

    function _bareBuy() private returns (uint256) {
        skip(1);
        vm.prank(admin);
        usdc.mint(address(market), 10_001 * USDC);
        return _bareSwap(address(usdc) < address(nvda), 10_000 * USDC);
    }

    function _bareSell() private returns (uint256) {
        skip(1);
        vm.prank(admin);
        nvda.mint(address(market), 26e18);
        return _bareSwap(address(nvda) < address(usdc), 25e18);
    }

    /// @dev The same pool, the vault as recipient, paid out of a balance: nothing but the swap.
    function _bareSwap(bool zeroForOne, uint256 amountIn) private returns (uint256) {
        market.swapExactly(
            address(market.poolOf(address(nvda))),
            zeroForOne,
            amountIn,
            zeroForOne ? LOWEST_SQRT_PRICE : HIGHEST_SQRT_PRICE,
            address(vault)
        );
        return _lastCall();
    }

    function _lastCall() private view returns (uint256) {
        return vm.lastCallGas().gasTotalUsed;
    }

    /// @param before What the call cost before first-loss capital and the execution-cost budget (GAS.md)
    function _record(string memory name, uint256 used, uint256 before) private {
        _record(name, used);
        assertLe(used * 100, before * 115, string.concat(name, " costs more than 15 % more"));
    }

    function _record(string memory name, uint256 used) private {
        vm.snapshotValue("RouterGas", name, used);
    }
}
