// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {ITokenRegistry} from "../interfaces/ITokenRegistry.sol";
import {BoundedCall} from "./BoundedCall.sol";

/// @title What keeps a token from being paid, read without trusting the token or its issuer
/// @dev No token can block a deposit or a redemption (`BoundedCall`). A flag that cannot be read does not restrict, because
/// tokens lack some of them; a balance that cannot be read is zero.
library TokenRestrictions {
    /// @param issuer The contract with the block list; the zero address where there is none
    /// @param path The holder, and the contracts that the token passes when it is sold
    function check(address token, address issuer, address[3] memory path, uint256 amount)
        internal
        view
        returns (ITokenRegistry.Restriction restriction, address account, uint256 transferable)
    {
        if (_flag(token, abi.encodeWithSignature("tokenPaused()"))) {
            return (ITokenRegistry.Restriction.TokenPaused, token, 0);
        }
        if (_flag(token, abi.encodeWithSignature("paused()"))) return (ITokenRegistry.Restriction.Paused, token, 0);
        for (uint256 i; issuer != address(0) && i < path.length; ++i) {
            if (path[i] != address(0) && _flag(issuer, abi.encodeWithSignature("isBlocked(address)", path[i]))) {
                return (ITokenRegistry.Restriction.Blocked, path[i], 0);
            }
        }
        transferable = BoundedCall.read(token, abi.encodeCall(IERC20.balanceOf, (path[0])));
        if (transferable < amount) return (ITokenRegistry.Restriction.ShortOfLedger, path[0], transferable);
        return (ITokenRegistry.Restriction.None, address(0), amount);
    }

    function _flag(address target, bytes memory data) private view returns (bool) {
        return BoundedCall.read(target, data) != 0;
    }
}
