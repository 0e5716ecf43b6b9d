// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IAccessControl} from "@openzeppelin/contracts/access/IAccessControl.sol";
import {TimelockController} from "@openzeppelin/contracts/governance/TimelockController.sol";

/// @title The admin of every contract: what it does is public for `getMinDelay()` seconds before it happens
/// @notice OpenZeppelin's TimelockController that administers itself: its roles and its delay change only through it.
/// Cancellers stop what a stolen proposer's key schedules. An operation that only takes roles from one account is not for that
/// account to cancel: a stolen canceller's key could block every change, its own dismissal included. So there must be two: a
/// stolen proposer's key could dismiss the only one. No operation waits for another one, which could be cancelled in its place.
contract Timelock is TimelockController {
    error CannotCancelOwnDismissal(bytes32 id);
    error PredecessorNotAllowed(bytes32 predecessor);

    /// @dev The account that loses roles by an operation that does nothing else.
    mapping(bytes32 id => address) private _dismissed;

    /// @param minDelay Seconds between scheduling an operation and executing it
    /// @param proposers Schedule and cancel operations
    /// @param executors Execute operations that are due; the zero address stands for anybody
    constructor(uint256 minDelay, address[] memory proposers, address[] memory executors)
        TimelockController(minDelay, proposers, executors, address(0))
    {}

    /// @inheritdoc TimelockController
    function schedule(
        address target,
        uint256 value,
        bytes calldata data,
        bytes32 predecessor,
        bytes32 salt,
        uint256 delay
    ) public override {
        if (predecessor != 0) revert PredecessorNotAllowed(predecessor);
        super.schedule(target, value, data, predecessor, salt, delay);
        _dismissed[hashOperation(target, value, data, predecessor, salt)] = _dismissedBy(data);
    }

    /// @inheritdoc TimelockController
    function scheduleBatch(
        address[] calldata targets,
        uint256[] calldata values,
        bytes[] calldata payloads,
        bytes32 predecessor,
        bytes32 salt,
        uint256 delay
    ) public override {
        if (predecessor != 0) revert PredecessorNotAllowed(predecessor);
        super.scheduleBatch(targets, values, payloads, predecessor, salt, delay);
        bytes32 id = hashOperationBatch(targets, values, payloads, predecessor, salt);
        address dismissed = payloads.length == 0 ? address(0) : _dismissedBy(payloads[0]);
        for (uint256 i = 1; i < payloads.length; ++i) {
            if (_dismissedBy(payloads[i]) != dismissed) return;
        }
        _dismissed[id] = dismissed;
    }

    /// @inheritdoc TimelockController
    function cancel(bytes32 id) public override {
        if (_dismissed[id] == msg.sender) revert CannotCancelOwnDismissal(id);
        super.cancel(id);
    }

    /// @dev Zero for a call that does anything else. A call of `revokeRole` moves no funds, whatever its target is.
    function _dismissedBy(bytes calldata call) private pure returns (address account) {
        // forge-lint: disable-next-line(unsafe-typecast)
        if (call.length != 68 || bytes4(call) != IAccessControl.revokeRole.selector) return address(0);
        (, account) = abi.decode(call[4:], (bytes32, address));
    }
}
