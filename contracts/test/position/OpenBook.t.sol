// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

import {Test} from "forge-std/Test.sol";
import {OpenBook} from "../../src/libraries/OpenBook.sol";

/// @notice The packed book against a plain list
contract OpenBookTest is Test {
    using OpenBook for OpenBook.Book;

    OpenBook.Book private book;
    uint32[] private ids;
    mapping(uint32 id => uint16) private tokenOf;

    function testFuzz_IsTheListOfWhatIsOpen(uint256[40] memory steps) public {
        uint32 nextId = 1;
        uint256 closed;
        for (uint256 i; i < steps.length; ++i) {
            if (ids.length == 0 || steps[i] % 3 != 0) {
                uint16 token = uint16(nextId) * 7;
                book.add(nextId, token);
                ids.push(nextId);
                tokenOf[nextId] = token;
                ++nextId;
            } else {
                uint256 at = (steps[i] / 3) % ids.length;
                book.remove(ids[at]);
                ids[at] = ids[ids.length - 1];
                ids.pop();
                ++closed;
            }

            assertEq(book.opened(), nextId - 1);
            assertEq(book.closed(), closed);
            assertEq(book.length(), ids.length);
            uint256[] memory open = book.ids();
            assertEq(open.length, ids.length);
            for (uint256 j; j < open.length; ++j) {
                assertEq(open[j], ids[j]);
                assertEq(book.idOf(tokenOf[ids[j]]), ids[j]);
            }
            assertEq(book.idOf(0), 0);
            assertEq(book.idOf(type(uint16).max), 0);
        }
    }

    function test_AnEmptyBookHoldsNothing() public view {
        assertEq(book.length(), 0);
        assertEq(book.ids().length, 0);
        assertEq(book.idOf(1), 0);
    }
}
