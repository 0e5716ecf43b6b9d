// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IPositionManager} from "../../src/interfaces/IPositionManager.sol";
import {ProtocolTest} from "./ProtocolTest.sol";

contract TradeFlowTest is ProtocolTest {
    function test_OpenBuysAtThePoolAndEntersThePosition() public {
        uint256 id = _open(nvda, 10_000 * USDC);

        IPositionManager.Position memory position = positions.getPosition(id);
        assertEq(position.positionId, 1);
        assertEq(position.agentId, agentId);
        assertEq(position.vault, address(vault));
        assertEq(position.token, address(nvda));
        assertApproxEqRel(position.tokenAmount, 100e18, 0.001e18);
        assertEq(position.usdcCostBasis, 10_000 * USDC);
        assertEq(position.entryPriceUsdc, 10_000 * USDC * 1e18 / position.tokenAmount);
        assertEq(nvda.balanceOf(address(vault)), position.tokenAmount);
    }
}
