// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IOwnerControls} from "../../src/interfaces/IOwnerControls.sol";
import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {OwnerTest} from "./OwnerTest.sol";

/// @notice A thief has the signer's key, an executor that submits whatever it signs, and the capital to bend the pools
contract StolenSignerTest is OwnerTest {
    uint256 private constant TURNOVER = 3_000 * USDC;

    /// @dev What a round trip within the policy costs at most: 1 % in, 3 % out, two pool fees, and their product.
    uint256 private constant ROUND_TRIP_BPS = 430;

    function setUp() public override {
        super.setUp();
        _useDefaultLimits();
        IOwnerControls.Mandate memory mandate = _mandate(TRADE);
        mandate.maxTradeUsdc = 1_000 * USDC;
        mandate.maxDailyTurnoverUsdc = TURNOVER;
        mandate.maxExposureUsdc = 2_000 * USDC;
        mandate.allowedTokens = new address[](1);
        mandate.allowedTokens[0] = address(nvda);
        _setMandate(mandate);
        skip(5 minutes);
        _setPrice(nvda, NVDA_PRICE);
    }

    /// @dev Buys above and sells below the oracle as far as the policy lets it, until the mandate stops it.
    function test_TheThiefsBestDayCostsTheTurnoverTimesTheSlippages() public {
        uint256 before = vault.totalAssets();
        uint256 bought;
        uint256[3] memory amounts = [uint256(5_000 * USDC), 1_000 * USDC, 137 * USDC];
        for (uint256 i; i < amounts.length; ++i) {
            for (uint256 trips; trips < 40; ++trips) {
                (bool opened, uint256 id) = _steal(amounts[i]);
                if (!opened) break;
                bought += amounts[i];
                if (trips % 2 == 0) _dump(id);
                else _letExit(id);
            }
        }
        assertGt(bought, TURNOVER - 137 * USDC);
        assertLe(bought, TURNOVER);
        uint256 lost = before - vault.totalAssets();
        emit log_named_uint("lost, USDC base units", lost);
        assertGt(lost, 0);
        assertLe(lost, TURNOVER * ROUND_TRIP_BPS / 10_000);
    }

    /// @dev Both sides at once: whatever the thief tries next, the owner's message before it decides.
    function test_TheOwnerStopsFlattensReKeysAndKeepsTrading() public {
        uint256 before = vault.totalAssets();
        uint256 id = _open(nvda, 1_000 * USDC);
        skip(1);

        // The thief's first trade, then the owner's stop; the thief's next ones are refused.
        _submit(_addIntent(id, 500 * USDC));
        ITradeRouter.AddToPositionIntent memory inFlight = _addIntent(id, 500 * USDC);
        _stopBuying();
        bytes4 stopped = ITradeRouter.MandateStopsBuying.selector;
        _refuse(inFlight, abi.encodeWithSelector(stopped, agentId, REDUCE_ONLY, 0));
        _refuse(_openIntent(tsla, 1), abi.encodeWithSelector(stopped, agentId, REDUCE_ONLY, 0));

        // The thief takes the protection off; the owner forbids that.
        _submit(_updateIntent(id, _ladder(_stop(-1_900, 10_000))));
        _setMandate(_mandate(STOPPED));
        _refuse(
            _updateIntent(id, _ladder(_stop(-2_000, 10_000))),
            abi.encodeWithSelector(ITradeRouter.MandateForbidsLooserLadder.selector, id)
        );

        // The thief has no say in what is the owner's.
        address thief = vm.addr(signerKey);
        vm.startPrank(thief);
        vm.expectRevert(abi.encodeWithSignature("NotAgentOwner(uint256,address)", agentId, thief));
        agents.setAgentSigner(agentId, vm.addr(0xBAD));
        vm.expectRevert(abi.encodeWithSignature("NotAgentOwner(uint256,address)", agentId, thief));
        agents.transferAgentOwnership(agentId, thief);
        vm.expectRevert(abi.encodeWithSignature("NotAgentOwner(uint256,address)", agentId, thief));
        agents.setPayoutRecipient(agentId, thief);
        vm.stopPrank();
        _refuseMessage(
            _callOf(Message.SetMandate, _nonce(), _soon(), signerKey),
            abi.encodeWithSelector(IOwnerControls.InvalidSignature.selector)
        );

        // The thief bends the pool; the sale waits for it and then goes through.
        market.moveTo(address(nvda), NVDA_PRICE * 9_600 / 10_000);
        _closeAll();
        router.executeExit(id);
        assertGt(positions.getPosition(id).tokenAmount, 0);
        market.moveTo(address(nvda), NVDA_PRICE);
        _exit(id);
        assertEq(positions.openPositionCountByAgent(agentId), 0);

        // What the thief signed and is not mined dies with the key.
        ITradeRouter.PositionIntent memory last = _openIntent(nvda, 100 * USDC);
        _setSigner(newSignerKey);
        _setMandate(_mandate(TRADE));
        _refuse(last, abi.encodeWithSelector(ITradeRouter.InvalidSignature.selector));
        signerKey = newSignerKey;
        skip(1);
        id = _open(nvda, 5_000 * USDC);
        assertEq(positions.getPosition(id).status, uint8(IPositionManager.PositionStatus.Open));
        assertLe(before - vault.totalAssets(), (TURNOVER + 5_000 * USDC) * ROUND_TRIP_BPS / 10_000);
    }

    /// @dev The thief signs far ahead; the owner voids all of it without a new key.
    function test_WhatIsSignedAheadIsVoidedAtOnce() public {
        uint256 first = router.nonces(agentId);
        ITradeRouter.PositionIntent[] memory signed = new ITradeRouter.PositionIntent[](5);
        for (uint256 i; i < signed.length; ++i) {
            signed[i] = _openIntent(nvda, 100 * USDC);
            signed[i].nonce = first + i;
        }
        _cancelIntents(first + 5);
        for (uint256 i; i < signed.length; ++i) {
            _refuse(signed[i], abi.encodeWithSelector(ITradeRouter.InvalidNonce.selector, first + 5, first + i));
        }
    }

    /// @dev The pool a little above what the policy's 1 % allows, back to the oracle's price afterwards.
    function _steal(uint256 amount) private returns (bool success, uint256 id) {
        market.moveTo(address(nvda), NVDA_PRICE * 10_090 / 10_000);
        ITradeRouter.PositionIntent memory intent = _openIntent(nvda, amount);
        intent.exits = _ladder(_take(100, 10_000), _stop(-80, 10_000));
        bytes memory signature = _sign(signerKey, digests.hashOpenPosition(intent));
        vm.prank(executor);
        bytes memory result;
        (success, result) = address(router).call(abi.encodeCall(router.openPosition, (intent, signature)));
        if (success) id = abi.decode(result, (uint256));
    }

    function _dump(uint256 id) private {
        market.moveTo(address(nvda), NVDA_PRICE * 9_915 / 10_000);
        _submit(_reduceIntent(id, 10_000));
    }

    /// @dev Its own stop, met by what the entry cost, at the widest floor.
    function _letExit(uint256 id) private {
        skip(1);
        _setOraclePrice(nvda, NVDA_PRICE);
        market.moveTo(address(nvda), NVDA_PRICE * 9_710 / 10_000);
        router.executeExit(id);
        for (uint256 i; i < 16 && positions.getPosition(id).tokenAmount != 0; ++i) {
            skip(60);
            _setOraclePrice(nvda, NVDA_PRICE);
            market.moveTo(address(nvda), NVDA_PRICE * 9_710 / 10_000);
            router.executeExit(id);
        }
        market.moveTo(address(nvda), NVDA_PRICE);
        skip(5 minutes);
        _setOraclePrice(nvda, NVDA_PRICE);
    }
}
