// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAgentRegistry} from "../../src/interfaces/IAgentRegistry.sol";
import {IOwnerControls} from "../../src/interfaces/IOwnerControls.sol";
import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {ITradeRouter} from "../../src/interfaces/ITradeRouter.sol";
import {OwnerTest} from "./OwnerTest.sol";

contract MandateTest is OwnerTest {
    function test_AnAgentWithoutAMandateTradesAsItsTrackAllows() public {
        IOwnerControls.MandateInForce memory none;
        assertEq(abi.encode(controls.mandateOf(agentId)), abi.encode(none));
        assertTrue(controls.isTokenAllowed(agentId, address(nvda)));
        _open(nvda, MAX_TRADE);
    }

    function test_AMandateIsKeptAsItIsSigned() public {
        IOwnerControls.Mandate memory mandate = _narrow();
        vm.expectEmit(address(controls));
        emit IOwnerControls.MandateUpdated(agentId, owner, mandate);
        _setMandate(mandate);
        IOwnerControls.MandateInForce memory inForce = controls.mandateOf(agentId);
        assertEq(inForce.mode, TRADE);
        assertEq(inForce.maxTradeUsdc, 1_000 * USDC);
        assertEq(inForce.maxDailyTurnoverUsdc, 3_000 * USDC);
        assertEq(inForce.maxExposureUsdc, 2_000 * USDC);
        assertTrue(inForce.hasTokenList);
        assertEq(inForce.validUntil, mandate.validUntil);
        assertEq(inForce.closingSince, 0);
        assertEq(inForce.version, 1);
        assertTrue(controls.isTokenAllowed(agentId, address(nvda)));
        assertFalse(controls.isTokenAllowed(agentId, address(tsla)));
    }

    function test_ANewMandateReplacesTheWholeOldOne() public {
        _setMandate(_narrow());
        IOwnerControls.Mandate memory mandate = _mandate(TRADE);
        mandate.allowedTokens = new address[](1);
        mandate.allowedTokens[0] = address(tsla);
        _setMandate(mandate);
        assertFalse(controls.isTokenAllowed(agentId, address(nvda)));
        _open(tsla, 19_000 * USDC);
        _setMandate(_mandate(TRADE));
        _open(nvda, 19_000 * USDC);
        assertEq(controls.mandateOf(agentId).version, 3);
    }

    function test_TheLargestTrade() public {
        _setMandate(_narrow());
        _refuse(
            _openIntent(nvda, 1_000 * USDC + 1),
            abi.encodeWithSelector(IOwnerControls.ExceedsMandateTrade.selector, agentId, 1_000 * USDC + 1, 1_000 * USDC)
        );
        uint256 id = _open(nvda, 1_000 * USDC);
        skip(1);
        _refuse(
            _addIntent(id, 1_000 * USDC + 1),
            abi.encodeWithSelector(IOwnerControls.ExceedsMandateTrade.selector, agentId, 1_000 * USDC + 1, 1_000 * USDC)
        );
        _submit(_addIntent(id, 1_000 * USDC));
    }

    function test_TheExposureIsTheCostOfWhatIsOpen() public {
        _setMandate(_narrow());
        uint256 id = _open(nvda, 1_000 * USDC);
        skip(1);
        _submit(_addIntent(id, 1_000 * USDC));
        skip(1);
        _refuse(
            _addIntent(id, 1),
            abi.encodeWithSelector(
                IOwnerControls.ExceedsMandateExposure.selector, agentId, 2_000 * USDC + 1, 2_000 * USDC
            )
        );
        _submit(_reduceIntent(id, 5_000));
        skip(1);
        _submit(_addIntent(id, 1_000 * USDC));
    }

    function test_TheTurnoverCountsYesterdaysPartOfTheLast24Hours() public {
        _setMandate(_narrow());
        for (uint256 i; i < 3; ++i) {
            _submit(_reduceIntent(_open(nvda, 1_000 * USDC), 10_000));
        }
        _refuse(
            _openIntent(nvda, 1),
            abi.encodeWithSelector(
                IOwnerControls.ExceedsMandateTurnover.selector, agentId, 3_000 * USDC + 1, 3_000 * USDC
            )
        );
        vm.warp((_today() + 1) * DAY + 12 hours);
        _setOraclePrice(nvda, NVDA_PRICE);
        // Half of yesterday lies within the last 24 hours.
        _refuse(
            _openIntent(nvda, 1_000 * USDC + 1),
            abi.encodeWithSelector(IOwnerControls.ExceedsMandateTrade.selector, agentId, 1_000 * USDC + 1, 1_000 * USDC)
        );
        _submit(_reduceIntent(_open(nvda, 1_000 * USDC), 10_000));
        _refuse(
            _openIntent(nvda, 500 * USDC + 1),
            abi.encodeWithSelector(
                IOwnerControls.ExceedsMandateTurnover.selector, agentId, 3_000 * USDC + 1, 3_000 * USDC
            )
        );
    }

    function test_TheTokensThatItNames() public {
        _setMandate(_narrow());
        _refuse(
            _openIntent(tsla, 1_000 * USDC),
            abi.encodeWithSelector(IOwnerControls.TokenOutsideMandate.selector, agentId, address(tsla))
        );
        _open(nvda, 1_000 * USDC);
    }

    function test_ATokenThatLeavesTheMandateIsSoldAndNotAddedTo() public {
        uint256 id = _open(tsla, 1_000 * USDC);
        skip(1);
        _setMandate(_narrow());
        _refuse(
            _addIntent(id, 100 * USDC),
            abi.encodeWithSelector(IOwnerControls.TokenOutsideMandate.selector, agentId, address(tsla))
        );
        _submit(_reduceIntent(id, 10_000));
    }

    function test_TheLastSecond() public {
        IOwnerControls.Mandate memory mandate = _mandate(TRADE);
        mandate.validUntil = block.timestamp + 100;
        _setMandate(mandate);
        vm.warp(mandate.validUntil);
        uint256 id = _open(nvda, 1_000 * USDC);
        skip(1);
        _refuse(
            _addIntent(id, 100 * USDC),
            abi.encodeWithSelector(ITradeRouter.MandateStopsBuying.selector, agentId, TRADE, mandate.validUntil)
        );
        _submit(_updateIntent(id, _ladder(_stop(-1_500, 10_000))));
        _submit(_reduceIntent(id, 10_000));
    }

    function test_FieldsHaveBounds() public {
        IOwnerControls.Mandate[6] memory mandates;
        mandates[0].mode = 3;
        mandates[1].maxTradeUsdc = uint256(1) << 64;
        mandates[2].maxDailyTurnoverUsdc = uint256(1) << 64;
        mandates[3].maxExposureUsdc = uint256(1) << 64;
        mandates[4].allowedTokens = new address[](65);
        mandates[5].validUntil = uint256(1) << 40;
        uint256[6] memory values = [uint256(3), 1 << 64, 1 << 64, 1 << 64, 65, 1 << 40];
        for (uint256 i; i < 6; ++i) {
            uint256 max = i == 0 ? 2 : values[i] - 1;
            _refuseMessage(
                _mandateCall(mandates[i], 0, _soon(), ownerKey),
                abi.encodeWithSelector(IOwnerControls.MandateOutOfRange.selector, i, values[i], max)
            );
        }
        IOwnerControls.Mandate memory largest;
        (largest.mode, largest.validUntil) = (2, (uint256(1) << 40) - 1);
        largest.maxTradeUsdc = largest.maxDailyTurnoverUsdc = largest.maxExposureUsdc = type(uint64).max;
        largest.allowedTokens = new address[](64);
        _setMandate(largest);
    }

    /// @dev Every limit of the track holds as without the mandate.
    function test_AMandateNeverWidensTheTrack() public {
        IOwnerControls.Mandate memory mandate = _mandate(TRADE);
        mandate.maxTradeUsdc = mandate.maxDailyTurnoverUsdc = mandate.maxExposureUsdc = type(uint64).max;
        _setMandate(mandate);
        _refuse(
            _openIntent(nvda, MAX_TRADE + 1),
            abi.encodeWithSelector(ITradeRouter.ExceedsMaxTradeSize.selector, MAX_TRADE + 1, MAX_TRADE)
        );
        _open(nvda, 19_000 * USDC);
        _open(tsla, 19_000 * USDC);
        skip(1);
        _refuse(
            _addIntent(1, CAP - 38_000 * USDC + 1),
            abi.encodeWithSelector(ITradeRouter.ExceedsAllocationCap.selector, agentId, CAP + 1, CAP)
        );
        vm.startPrank(operator);
        agents.setAgentStatus(agentId, uint8(IAgentRegistry.AgentStatus.Suspended));
        vm.stopPrank();
        _refuse(_addIntent(1, USDC), abi.encodeWithSelector(ITradeRouter.AgentNotTradable.selector, agentId));
    }

    // Stop

    function test_AStopLeavesTheLimitsAndEndsWithTheNextMandate() public {
        _setMandate(_narrow());
        vm.expectEmit(address(controls));
        emit IOwnerControls.BuyingStopped(agentId, owner, REDUCE_ONLY);
        _stopBuying();
        IOwnerControls.MandateInForce memory inForce = controls.mandateOf(agentId);
        assertEq(inForce.mode, REDUCE_ONLY);
        assertEq(inForce.maxTradeUsdc, 1_000 * USDC);
        assertEq(inForce.validUntil, _narrow().validUntil);
        _refuse(
            _openIntent(nvda, 100 * USDC),
            abi.encodeWithSelector(ITradeRouter.MandateStopsBuying.selector, agentId, REDUCE_ONLY, inForce.validUntil)
        );
        _setMandate(_narrow());
        _open(nvda, 1_000 * USDC);
    }

    function test_AStopKeepsAStricterMode() public {
        _setMandate(_mandate(STOPPED));
        _stopBuying();
        assertEq(controls.mandateOf(agentId).mode, STOPPED);
        _closeAll();
        assertEq(controls.mandateOf(agentId).mode, STOPPED);
    }

    function test_AReduceOnlyAgentMayLoosenItsLadder() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        _stopBuying();
        _submit(_updateIntent(id, _ladder(_stop(-1_500, 10_000))));
    }

    function test_AStoppedAgentOnlyTightensItsLadder() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        _setMandate(_mandate(STOPPED));
        bytes memory refusal = abi.encodeWithSelector(ITradeRouter.MandateForbidsLooserLadder.selector, id);
        _refuse(_updateIntent(id, _ladder(_stop(-801, 10_000))), refusal);
        _refuse(_updateIntent(id, _ladder(_stop(-700, 9_999), _stop(-801, 10_000))), refusal);
        _submit(_updateIntent(id, _ladder(_stop(-800, 10_000))));
        _submit(_updateIntent(id, _ladder(_stop(-300, 5_000), _stop(-800, 10_000))));
        _submit(_updateIntent(id, _ladder(_take(100, 10_000), _stop(-200, 10_000))));
        _submit(_reduceIntent(id, 10_000));
    }

    function test_APauseOfTheOwnersDoesNotStopItsExits() public {
        uint256 id = _open(nvda, 1_000 * USDC);
        _setMandate(_mandate(STOPPED));
        _setPrice(nvda, 91 * USD);
        _exit(id);
        assertEq(positions.getPosition(id).status, uint8(IPositionManager.PositionStatus.Closed));
    }

    /// @dev 1,000 a trade, 3,000 a day, 2,000 at once, in NVDA.
    function _narrow() private view returns (IOwnerControls.Mandate memory mandate) {
        mandate.maxTradeUsdc = 1_000 * USDC;
        mandate.maxDailyTurnoverUsdc = 3_000 * USDC;
        mandate.maxExposureUsdc = 2_000 * USDC;
        mandate.allowedTokens = new address[](1);
        mandate.allowedTokens[0] = address(nvda);
        mandate.validUntil = 20_010 * DAY;
    }
}
