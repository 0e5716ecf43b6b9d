// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {StockToken} from "../../src/embedded/StockToken.sol";
import {IMandateVault} from "../../src/interfaces/IMandateVault.sol";
import {ProtocolTest} from "../router/ProtocolTest.sol";

/// @notice A token that calls out whenever it moves, and remembers what came of it
contract HookToken is StockToken {
    address private target;
    bytes private call;
    bytes public reason;

    constructor(address admin) StockToken("Hook", "HOOK", 18, admin) {}

    function arm(address target_, bytes calldata call_) external {
        (target, call) = (target_, call_);
    }

    function _update(address from, address to, uint256 value) internal override {
        super._update(from, to, value);
        if (target == address(0)) return;
        (bool success, bytes memory answer) = target.call(call);
        reason = success ? bytes("went through") : answer;
    }
}

contract ReentrancyTest is ProtocolTest {
    HookToken private hook;

    function setUp() public override {
        super.setUp();
        hook = new HookToken(admin);
        bytes32 minter = hook.MINTER_ROLE();
        vm.prank(admin);
        hook.grantRole(minter, address(market));
        _list(hook, 100 * USD);
    }

    function test_NoDepositInTheMiddleOfATrade() public {
        hook.arm(address(vault), abi.encodeCall(vault.deposit, (1, address(hook))));
        _open(hook, 1_000 * USDC);
        assertEq(hook.reason(), abi.encodeWithSelector(IMandateVault.TradeInProgress.selector));
    }

    function test_NoWithdrawalInTheMiddleOfATrade() public {
        uint256 id = _open(hook, 1_000 * USDC);
        hook.arm(address(vault), abi.encodeCall(vault.redeem, (1, address(hook), address(hook))));
        _submit(_reduceIntent(id, 5_000));
        assertEq(hook.reason(), abi.encodeWithSelector(IMandateVault.TradeInProgress.selector));
    }

    function test_NoExitInTheMiddleOfATrade() public {
        uint256 id = _open(hook, 1_000 * USDC);
        hook.arm(address(router), abi.encodeCall(router.executeExit, (id)));
        _submit(_reduceIntent(id, 5_000));
        assertEq(hook.reason(), abi.encodeWithSelector(ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector));

        uint256[] memory ids = new uint256[](1);
        ids[0] = id;
        hook.arm(address(router), abi.encodeCall(router.executeExits, (ids)));
        _submit(_reduceIntent(id, 5_000));
        assertEq(hook.reason(), abi.encodeWithSelector(ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector));
    }
}
