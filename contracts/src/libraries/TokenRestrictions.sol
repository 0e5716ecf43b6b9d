// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {IERC20} from "@openzeppelin/contracts/token/ERC20/IERC20.sol";
import {ITokenRegistry} from "../interfaces/ITokenRegistry.sol";

/// @title What keeps a token from being paid, read without trusting the token or its issuer
/// @dev Each read has bounded gas and returns one word, so no token can block a deposit or a redemption. A flag that
/// cannot be read does not restrict, because tokens lack some of them; a balance that cannot be read is zero. A caller
/// cannot starve a read of gas and go on: a 64th of what the read got would be left, less than one read costs.
library TokenRestrictions {
    /// @dev A beacon proxy's cold read takes 15,000.
    uint256 private constant READ_GAS = 50_000;

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
        transferable = read(token, abi.encodeCall(IERC20.balanceOf, (path[0])));
        if (transferable < amount) return (ITokenRegistry.Restriction.ShortOfLedger, path[0], transferable);
        return (ITokenRegistry.Restriction.None, address(0), amount);
    }

    /// @notice Returns the first word that a call returns; 0 where it fails or returns less
    function read(address target, bytes memory data) internal view returns (uint256 word) {
        assembly ("memory-safe") {
            let success := staticcall(READ_GAS, target, add(data, 32), mload(data), 0, 32)
            if and(success, gt(returndatasize(), 31)) { word := mload(0) }
        }
    }

    function _flag(address target, bytes memory data) private view returns (bool) {
        return read(target, data) != 0;
    }
}
