// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {AccessControl} from "@openzeppelin/contracts/access/AccessControl.sol";

/// @title Roles with exactly one default admin, which changes in two steps
/// @notice The admin names its successor and the successor accepts, so a mistyped address never becomes the admin.
/// `grantRole`, `revokeRole` and `renounceRole` refuse DEFAULT_ADMIN_ROLE: there is never a second admin, and never none.
/// @dev The rules of OpenZeppelin's AccessControlDefaultAdminRules without its delay: on real chains the admin is a
/// timelock, so naming a successor already takes the timelock's delay, and the trade router has no room for a second one.
abstract contract TwoStepAdmin is AccessControl {
    event DefaultAdminTransferStarted(address indexed current, address indexed pending);
    event DefaultAdminTransferred(address indexed previous, address indexed current);

    error DefaultAdminIsTransferredInTwoSteps();
    error NotPendingDefaultAdmin(address caller, address pending);

    /// @notice The only holder of DEFAULT_ADMIN_ROLE
    address public defaultAdmin;

    /// @notice The account that may accept the role; the zero address when no transfer is under way
    address public pendingDefaultAdmin;

    constructor(address admin) {
        defaultAdmin = admin;
        _grantRole(DEFAULT_ADMIN_ROLE, admin);
    }

    /// @notice Names the next admin, or cancels with the zero address; only the admin
    function beginDefaultAdminTransfer(address next) external onlyRole(DEFAULT_ADMIN_ROLE) {
        pendingDefaultAdmin = next;
        emit DefaultAdminTransferStarted(msg.sender, next);
    }

    /// @notice Makes the caller the admin in place of the present one; only the account that was named
    function acceptDefaultAdminTransfer() external {
        if (msg.sender != pendingDefaultAdmin) revert NotPendingDefaultAdmin(msg.sender, pendingDefaultAdmin);
        address previous = defaultAdmin;
        delete pendingDefaultAdmin;
        defaultAdmin = msg.sender;
        _revokeRole(DEFAULT_ADMIN_ROLE, previous);
        _grantRole(DEFAULT_ADMIN_ROLE, msg.sender);
        emit DefaultAdminTransferred(previous, msg.sender);
    }

    function _grantRole(bytes32 role, address account) internal override returns (bool) {
        if (role == DEFAULT_ADMIN_ROLE && account != defaultAdmin) revert DefaultAdminIsTransferredInTwoSteps();
        return super._grantRole(role, account);
    }

    function _revokeRole(bytes32 role, address account) internal override returns (bool) {
        if (role == DEFAULT_ADMIN_ROLE && account == defaultAdmin) revert DefaultAdminIsTransferredInTwoSteps();
        return super._revokeRole(role, account);
    }
}
