// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {StandIn} from "../../src/reader/StandIn.sol";
import {ReaderTest} from "./ReaderTest.sol";

contract StandInTest is ReaderTest {
    function test_MakesTheCallsInTheirOrderAsTheAccountAndGoesOnAfterOneThatFails() public {
        StandIn standIn = StandIn(_placed(makeAddr("holder")));
        deal(address(usdc), address(standIn), 5);
        StandIn.Call3[] memory calls = new StandIn.Call3[](3);
        calls[0] = StandIn.Call3(address(usdc), false, abi.encodeCall(usdc.transfer, (address(1), 3)));
        calls[1] = StandIn.Call3(address(usdc), false, abi.encodeCall(usdc.transfer, (address(1), 3)));
        calls[2] = StandIn.Call3(address(usdc), false, abi.encodeCall(usdc.balanceOf, (address(standIn))));
        StandIn.Result[] memory results = standIn.aggregate3(calls);
        assertTrue(results[0].success);
        assertFalse(results[1].success);
        assertEq(abi.decode(results[2].returnData, (uint256)), 2);
    }

    function test_AcceptsEverySignature() public {
        StandIn standIn = StandIn(_placed(makeAddr("signer")));
        assertEq(standIn.isValidSignature(keccak256("any"), ""), IERC1271.isValidSignature.selector);
    }

    /// @dev Its code at an account, as a state override puts it there.
    function _placed(address account) private returns (address) {
        vm.etch(account, type(StandIn).runtimeCode);
        return account;
    }
}
