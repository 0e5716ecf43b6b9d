// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Test, Vm} from "forge-std/Test.sol";

/// @notice A contract of more than 24,576 bytes is refused by the chain
contract CodeSizeTest is Test {
    uint256 private constant MAX_SIZE = 24_576;
    uint256 private constant MIN_SPARE = 1_024;

    /// @dev Contracts that are deployed: those of the folders that `npm run abis` reads, each named after its file.
    function test_EveryDeployableContractHasAKilobyteToSpare() public view {
        uint256 count = _checkFolder("src") + _checkFolder("src/adapters") + _checkFolder("src/embedded");
        assertGt(count, 20);
    }

    function _checkFolder(string memory folder) private view returns (uint256 count) {
        Vm.DirEntry[] memory entries = vm.readDir(folder);
        for (uint256 i; i < entries.length; ++i) {
            if (entries[i].isDir) continue;
            string[] memory parts = vm.split(entries[i].path, "/");
            string memory file = parts[parts.length - 1];
            string memory name = vm.replace(file, ".sol", "");
            uint256 size = vm.getDeployedCode(string.concat(file, ":", name)).length;
            assertGt(size, 0, name);
            assertLe(size + MIN_SPARE, MAX_SIZE, name);
            ++count;
        }
    }
}
