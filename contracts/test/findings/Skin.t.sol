// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IntentDigests} from "../router/IntentDigests.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

/// @notice The findings of the audit of the economics, each as its attacker would play it; every test failed before the fix
contract SkinTest is ProtocolTest {
    function test_Skin11_ANewRouterContinuesLossesDailyFiguresAndNonces() public {
        uint256 id = _open(nvda, 10_000 * USDC);
        _setPrice(nvda, 90 * USD);
        _exit(id);
        bytes memory record = abi.encode(allocations.trackRecordOf(agentId));
        uint256 turnover = router.dailyTurnoverUsdc(agentId, _today());
        int256 lost = router.lifetimeRealizedPnlUsdc(agentId);
        uint256 cap = allocations.effectiveCapUsdc(agentId);
        assertLt(lost, 0);

        vm.startPrank(admin);
        _createRouter();
        allocations.setTradeRouter(address(router));
        vm.stopPrank();
        digests = new IntentDigests(address(router));
        assertEq(abi.encode(allocations.trackRecordOf(agentId)), record);
        assertEq(router.dailyTurnoverUsdc(agentId, _today()), turnover);
        assertEq(router.lifetimeRealizedPnlUsdc(agentId), lost);
        assertEq(allocations.effectiveCapUsdc(agentId), cap);
        assertEq(router.nonces(agentId), 1);
    }
}
