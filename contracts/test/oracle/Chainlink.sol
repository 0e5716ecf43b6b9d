// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {CommonBase} from "forge-std/Base.sol";

/// @notice Creates Chainlink's own contracts, as contracts/tools/chainlink.mjs compiled them
abstract contract Chainlink is CommonBase {
    function _create(string memory name, bytes memory arguments) internal returns (address created) {
        bytes memory code = vm.parseJsonBytes(vm.readFile("chainlink.json"), string.concat(".", name, ".bytecode"));
        bytes memory creation = bytes.concat(code, arguments);
        assembly ("memory-safe") {
            created := create(0, add(creation, 32), mload(creation))
        }
        require(created != address(0), name);
    }
}
